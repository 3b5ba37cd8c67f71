// Prints the record that the tests use, as heed writes it.
#include <cstdio>

#include "tests/record_samples.h"

int main() {
  std::fputs(heed::ToJson(heed::test::SampleRecord()).c_str(), stdout);
  return 0;
}
