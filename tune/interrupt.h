// Ctrl-C, politely: the first asks, the second ends the process.
#ifndef HEED_TUNE_INTERRUPT_H_
#define HEED_TUNE_INTERRUPT_H_

namespace heed {

// From now on the first SIGINT or SIGTERM only sets a flag; a second one clears
// the line of a progress bar on stdout and stderr, if these are terminals, and
// ends the process with exit code 130.
void CatchInterrupts();

// The flag.
bool Interrupted();

}  // namespace heed

#endif  // HEED_TUNE_INTERRUPT_H_
