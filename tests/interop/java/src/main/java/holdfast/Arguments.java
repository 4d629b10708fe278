/* The words of a line behind the name. */
package holdfast;

import java.util.Arrays;
import java.util.List;

final class Arguments {
    private static final int FIRST = 4;

    private final String[] words;

    Arguments(String[] words) {
        this.words = words;
    }

    String text(int index) {
        return words[FIRST + index];
    }

    long number(int index) {
        return Long.parseLong(text(index));
    }

    int integer(int index) {
        return Integer.parseInt(text(index));
    }

    /* All words from this one on. */
    List<String> texts(int index) {
        return Arrays.asList(words).subList(FIRST + index, words.length);
    }
}
