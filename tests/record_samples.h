// Tuning records to test with.
#ifndef HEED_TESTS_RECORD_SAMPLES_H_
#define HEED_TESTS_RECORD_SAMPLES_H_

#include "runtime/record.h"

namespace heed::test {

// Two entries for this machine: b1_hq4_hkv4_q1024_k1024_d64_causal_f32 with row
// block 96 and key tile 192, and a decode step; both for two threads on the
// best target.
Record SampleRecord();

}  // namespace heed::test

#endif  // HEED_TESTS_RECORD_SAMPLES_H_
