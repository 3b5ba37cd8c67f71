// Validation of what arrays say of a batch's sequences: their lengths, and the
// pages their keys lie in. These are the arguments whose elements are read
// before anything is computed.
#ifndef HEED_RUNTIME_LENGTHS_H_
#define HEED_RUNTIME_LENGTHS_H_

#include <cstddef>
#include <cstdint>

#include "runtime/include/heed.h"

namespace heed {

// `ends` [batch + 1] rises from 0 and no sequence is longer than `longest`,
// which `longest_name` names. HEED_OK or Fail() naming owner.name.
heed_status ValidateCumulative(const char* owner, const char* name,
                               const int32_t* ends, int64_t batch,
                               const char* longest_name, int64_t longest);

// The lengths of a call whose problem is ragged. Presumes that the arrays can
// be read.
heed_status ValidateLengths(const heed_problem& problem, const heed_call& call);

// The numbers of a table, apart from its entries.
heed_status ValidateTableSizes(const char* owner,
                               const heed_block_table& table);

// The table has room for `keys` keys of sequence `batch` in pages of page_size,
// and the entries for its keys [key_begin, key_end) name pages that exist.
// Presumes ValidateTableSizes() and that the table can be read.
heed_status ValidatePages(const char* owner, const heed_block_table& table,
                          int64_t page_size, int64_t batch, int64_t keys,
                          int64_t key_begin, int64_t key_end);

// Sequence `batch`'s entries of a table.
inline const int32_t* TableRow(const heed_block_table& table, int64_t batch) {
  // The stride of a single row may be anything.
  return table.data + (batch == 0 ? 0 : batch * table.stride_batch);
}

}  // namespace heed

#endif  // HEED_RUNTIME_LENGTHS_H_
