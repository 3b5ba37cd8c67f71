// Between records and JSON values: what the reader and the writer share.
#ifndef HEED_RUNTIME_RECORD_TEXT_H_
#define HEED_RUNTIME_RECORD_TEXT_H_

#include <nlohmann/json.hpp>
#include <string>

#include "runtime/json_reader.h"
#include "runtime/record.h"

namespace heed {

// The hash of a record's members other than "integrity", as it is stored. One
// way to write JSON down, so that white space does not count.
std::string IntegrityOf(const Json& record);

Json EntryToJson(const RecordEntry& entry);

// False and one line if the entry is damaged; true with a line in *note if it
// is whole but of no use here.
bool EntryFromJson(const Json& json, const std::string& place,
                   RecordEntry* entry, std::string* note, std::string* why);

// Parts that schema 1 has too.
bool MachineFromJson(const Json& json, Record* record, std::string* why);
bool TileFromJson(const Json& json, const std::string& place, Tile* tile,
                  std::string* why);

// A whole record of schema 1 (heed before its decode kernels could be tuned).
bool RecordFromSchema1(const Json& json, Record* record, std::string* why);

}  // namespace heed

#endif  // HEED_RUNTIME_RECORD_TEXT_H_
