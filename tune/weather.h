// What the operating system says of others who want the processors.
#ifndef HEED_TUNE_WEATHER_H_
#define HEED_TUNE_WEATHER_H_

#include <string>

#include "tune/sampler.h"

namespace heed {

// From /proc/stat (steal) and /proc/pressure/cpu ("some"); what is missing
// there is 0. Some 30 microseconds.
Disturbance ReadDisturbance();

// The same of the files' text, for tests.
Disturbance ParseDisturbance(const std::string& stat,
                             const std::string& pressure,
                             long ticks_per_second);

// One-minute load average; 0 if unknown.
double LoadAverage();

}  // namespace heed

#endif  // HEED_TUNE_WEATHER_H_
