/* A name in a line: PATH, PATH:ARGUMENT, and either followed by #TAG. */
package holdfast.curator;

/**
 * The argument is what an object has to know besides its path. The tag makes further objects of one
 * path, and says nothing else.
 */
record Name(String path, String argument) {
    static Name parse(String text) {
        String plain = withoutTag(text);
        int colon = plain.indexOf(':');
        return colon < 0
                ? new Name(plain, "")
                : new Name(plain.substring(0, colon), plain.substring(colon + 1));
    }

    static String withoutTag(String text) {
        int hash = text.indexOf('#');
        return hash < 0 ? text : text.substring(0, hash);
    }

    int number() {
        return Integer.parseInt(argument);
    }
}
