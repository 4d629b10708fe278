/* A lock that should exclude others did not. */
package holdfast.bench;

final class TwoHoldersException extends Exception {
    private static final long serialVersionUID = 1;

    TwoHoldersException() {
        super("two holders");
    }
}
