// Ctrl-C, politely: the first asks, the second ends the process.
#ifndef HEED_TUNE_INTERRUPT_H_
#define HEED_TUNE_INTERRUPT_H_

namespace heed {

// From now on the first SIGINT or SIGTERM only sets a flag; a second one acts
// as it would without this.
void CatchInterrupts();

// The flag.
bool Interrupted();

}  // namespace heed

#endif  // HEED_TUNE_INTERRUPT_H_
