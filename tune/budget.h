// Time: how much a user grants, and how it is shared among classes.
#ifndef HEED_TUNE_BUDGET_H_
#define HEED_TUNE_BUDGET_H_

#include <cstddef>
#include <string>
#include <vector>

namespace heed {

// "90", "90s", "1.5m", "1h" in seconds. On failure returns false and says in
// one line what was expected.
bool ParseDuration(const std::string& text, double* seconds, std::string* why);

// "47 s", "2 min 05 s".
std::string DurationText(double seconds);

// How thorough a search is when time allows.
struct Effort {
  const char* name = "";
  size_t candidates = 1;
  int search_rounds = 0;
  std::vector<int> looks;  // confirmation rounds after which intervals are read
  const char* budget = "0s";  // unless the user says otherwise
};

// estimate (the model alone, nothing is measured), quick, normal, thorough.
const std::vector<Effort>& Efforts();

// A class's share of `left` seconds, by what it and those after it would like
// to have; wants[0] is the class itself. Wants are guesses, and on a noisy
// machine too small: what nobody wants is granted too.
double Share(double left, const std::vector<double>& wants);

}  // namespace heed

#endif  // HEED_TUNE_BUDGET_H_
