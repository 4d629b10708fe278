/* A lock of the measured library, used without blocking. */
package holdfast.bench;

import java.util.concurrent.CompletionStage;

interface AsyncMutex {
    CompletionStage<Void> lock();

    CompletionStage<Void> unlock();
}
