// Records forged: members changed, and the hash made right again.
#ifndef HEED_TESTS_RECORD_DAMAGE_H_
#define HEED_TESTS_RECORD_DAMAGE_H_

#include <random>
#include <string>

#include "runtime/record_text.h"

namespace heed::test {

// Any member of the tree becomes a value that does not belong there.
void ChangeSomething(Json* json, std::mt19937_64* random);

// The text with the hash of what it says, if it is an object at all. What is no
// UTF-8 is replaced.
std::string Seal(Json json);

}  // namespace heed::test

#endif  // HEED_TESTS_RECORD_DAMAGE_H_
