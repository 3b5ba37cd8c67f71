// One tuner at a time on a machine: two would measure each other.
#ifndef HEED_TUNE_MEASURE_LOCK_H_
#define HEED_TUNE_MEASURE_LOCK_H_

#include <functional>
#include <string>
#include <vector>

namespace heed {

class MeasureLock {
 public:
  MeasureLock() = default;
  ~MeasureLock();
  MeasureLock(const MeasureLock&) = delete;
  MeasureLock& operator=(const MeasureLock&) = delete;

  enum class Result { kTaken, kBusy, kGivenUp };

  // Locks <folder>/heed-tune.<user id>.lock, and <folder>/heed-tune.lock if
  // that can be opened: other users' tuners then wait too. Where there are no
  // locks it goes on without, and has_locks() is false. `folder` empty: TMPDIR,
  // else /tmp.
  //
  // While another tuner holds them: with `wait` calls `waiting` with a line
  // that says who it is, once, and tries again every 0.2 s until `give_up` says
  // so; else kBusy, and *holder has that line. The system frees the locks of a
  // process that died.
  Result Take(const std::string& folder, bool wait,
              const std::function<void(const std::string&)>& waiting,
              const std::function<bool()>& give_up, std::string* holder);

  bool has_locks() const { return has_locks_; }

 private:
  bool TryLock(int file, std::string* holder);

  bool has_locks_ = true;
  std::vector<int> files_;
};

}  // namespace heed

#endif  // HEED_TUNE_MEASURE_LOCK_H_
