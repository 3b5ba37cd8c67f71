#include "runtime/record_index.h"

#include <algorithm>
#include <cstdlib>

namespace heed {
namespace {

bool Better(const Hit& a, const Hit& b) {
  return a.tier != b.tier ? a.tier < b.tier : a.doublings < b.doublings;
}

// The class whatever the threads: how many pieces each has then says nothing.
ShapeClass WithoutThreads(ShapeClass c) {
  c.threads = 0;
  c.pieces = 0;
  return c;
}

}  // namespace

const char* TierName(Tier tier) {
  switch (tier) {
    case Tier::kPinned:
      return "pinned";
    case Tier::kExact:
      return "exact";
    case Tier::kUarch:
      return "uarch";
    case Tier::kIsa:
      return "isa";
    case Tier::kAnalytical:
      return "analytical";
  }
  return "unknown";
}

void RecordIndex::AddEntry(const FoundRecord& found, const RecordEntry& entry) {
  // Under its own class, and under each that is one doubling away.
  const int steps[][2] = {{0, 0}, {-1, 0}, {1, 0}, {0, -1}, {0, 1}};
  const auto scaled = [](int64_t length, int step) {
    return step < 0 ? length / 2 : step > 0 ? length * 2 : length;
  };
  for (const auto& step : steps) {
    ShapeClass c = entry.shape_class;
    c.len_q = scaled(c.len_q, step[0]);
    c.len_k = scaled(c.len_k, step[1]);
    const Hit hit{&entry, &found, found.tier, step[0] != 0 || step[1] != 0};
    Hit other = hit;
    other.tier = std::max(hit.tier, Tier::kUarch);
    std::vector<Serving>& row = table_[WithoutThreads(c)];
    const auto known =
        std::find_if(row.begin(), row.end(), [&c](const Serving& s) {
          return s.threads == c.threads && s.pieces == c.pieces;
        });
    if (known == row.end()) {
      row.push_back({c.threads, c.pieces, hit, other});
    } else if (Better(hit, known->same)) {
      known->same = hit;
      known->other = other;
    }
  }
}

const Hit* RecordIndex::Find(const ShapeClass& wanted) const {
  const auto found = table_.find(WithoutThreads(wanted));
  if (found == table_.end()) return nullptr;
  const Serving* best = nullptr;
  const auto distance = [&wanted](const Serving& serving) {
    return std::abs(serving.threads - wanted.threads);
  };
  for (const Serving& serving : found->second) {
    if (serving.threads == wanted.threads && serving.pieces == wanted.pieces) {
      return &serving.same;
    }
    if (best == nullptr || serving.other.tier < best->other.tier ||
        (serving.other.tier == best->other.tier &&
         distance(serving) < distance(*best))) {
      best = &serving;
    }
  }
  return best == nullptr ? nullptr : &best->other;
}

}  // namespace heed
