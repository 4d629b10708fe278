/* The words of a line after the name. */
package holdfast.lines;

import java.util.Arrays;
import java.util.List;

public final class Arguments {
    private static final int FIRST = 4;

    private final String[] words;

    Arguments(String[] words) {
        this.words = words;
    }

    public String text(int index) {
        return words[FIRST + index];
    }

    public long number(int index) {
        return Long.parseLong(text(index));
    }

    public int integer(int index) {
        return Integer.parseInt(text(index));
    }

    /* All words from this one on. */
    public List<String> texts(int index) {
        return Arrays.asList(words).subList(Math.min(FIRST + index, words.length), words.length);
    }
}
