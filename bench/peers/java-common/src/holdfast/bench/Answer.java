/* One line of JSON, built field by field. */
package holdfast.bench;

import java.util.Locale;

final class Answer {
    private final StringBuilder text = new StringBuilder("{");

    Answer add(String field, long value) {
        return raw(field, Long.toString(value));
    }

    /* Plain decimals, never with an exponent. */
    Answer add(String field, Double value) {
        return raw(field, value == null ? "null" : String.format(Locale.ROOT, "%.3f", value));
    }

    Answer add(String field, boolean value) {
        return raw(field, Boolean.toString(value));
    }

    Answer add(String field, String value) {
        return raw(field, quote(value));
    }

    @Override
    public String toString() {
        return text + "}";
    }

    private Answer raw(String field, String value) {
        text.append(text.length() > 1 ? ", " : "").append(quote(field)).append(": ").append(value);
        return this;
    }

    private static String quote(String value) {
        StringBuilder quoted = new StringBuilder("\"");
        for (char c : value.toCharArray()) {
            if (c == '"' || c == '\\') {
                quoted.append('\\');
            }
            quoted.append(c < ' ' ? ' ' : c);
        }
        return quoted.append('"').toString();
    }
}
