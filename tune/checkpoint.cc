#include "tune/checkpoint.h"

#include <sys/stat.h>

#include <utility>

#include "tune/checkpoint_index.h"
#include "tune/printable.h"

namespace heed {
namespace {

constexpr char kOneFile[] = "model.safetensors";
constexpr char kIndexFile[] = "model.safetensors.index.json";
constexpr size_t kMaxIndexBytes = size_t{64} << 20;

bool EndsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() &&
         text.compare(text.size() - end.size(), end.size(), end) == 0;
}

bool IsFolder(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

// Whether there is something of that name, usable or not.
bool IsThere(const std::string& path) {
  struct stat status;
  return lstat(path.c_str(), &status) == 0;
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

std::string TensorProblem(const std::string& file, const std::string& name,
                          const std::string& reason) {
  return file + ": tensor " + Printable(name) + ": " + reason;
}

bool ReadSmallFile(const std::string& path, size_t max_bytes, std::string* text,
                   std::string* why) {
  MappedFile file;
  std::string reason;
  if (!file.Open(path, &reason)) {
    *why = path + ": " + reason;
    return false;
  }
  if (file.size() > max_bytes) {
    *why = path + ": " + std::to_string(file.size()) + " bytes (at most " +
           std::to_string(max_bytes) + " are read)";
    return false;
  }
  text->assign(file.data(), file.data() + file.size());
  return true;
}

bool Checkpoint::Open(const std::string& path, std::string* why) {
  path_ = path;
  if (IsFolder(path)) {
    folder_ = path;
    path_ = path + "/" + kOneFile;
    if (!IsThere(path_)) {
      path_ = path + "/" + kIndexFile;
      if (!IsThere(path_)) {
        *why = path + ": neither " + kOneFile + " nor " + kIndexFile +
               " is in this folder";
        return false;
      }
    }
  } else {
    folder_ = FolderOf(path);
  }
  if (EndsWith(path_, ".json")) return OpenIndex(why);
  shards_.push_back(std::make_unique<Shard>());
  shards_[0]->path = path_;
  if (!OpenShard(shards_[0].get(), why)) return false;
  for (const auto& [name, tensor] : shards_[0]->tensors) where_[name] = 0;
  return true;
}

bool Checkpoint::OpenBytes(const std::string& name, const unsigned char* bytes,
                           size_t size, std::string* why) {
  path_ = name;
  folder_ = FolderOf(name);
  shards_.push_back(std::make_unique<Shard>());
  shards_[0]->path = name;
  if (!ReadShard(bytes, size, shards_[0].get(), why)) return false;
  for (const auto& [tensor, stored] : shards_[0]->tensors) where_[tensor] = 0;
  return true;
}

bool Checkpoint::OpenIndex(std::string* why) {
  std::string text, reason;
  if (!ReadSmallFile(path_, kMaxIndexBytes, &text, why)) return false;
  CheckpointIndex index;
  if (!ParseCheckpointIndex(text, &index, &reason)) {
    *why = path_ + ": " + reason;
    return false;
  }
  std::map<std::string, size_t> places;
  for (const auto& [tensor, file] : index) {
    const auto [place, is_new] = places.emplace(file, shards_.size());
    if (is_new) {
      shards_.push_back(std::make_unique<Shard>());
      shards_.back()->path = folder_ + "/" + file;
    }
    where_[tensor] = place->second;
  }
  return true;
}

bool Checkpoint::OpenShard(Shard* shard, std::string* why) {
  std::string reason;
  if (!shard->file.Open(shard->path, &reason)) {
    *why = shard->path + ": " + reason;
    return false;
  }
  return ReadShard(shard->file.data(), shard->file.size(), shard, why);
}

bool Checkpoint::ReadShard(const unsigned char* bytes, size_t size,
                           Shard* shard, std::string* why) {
  std::vector<StoredTensor> tensors;
  std::string reason;
  if (!ParseSafetensors(bytes, size, &tensors, &reason)) {
    *why = shard->path + ": " + reason;
    return false;
  }
  for (StoredTensor& tensor : tensors) {
    const std::string name = tensor.name;
    shard->tensors.emplace(name, std::move(tensor));
  }
  shard->bytes = bytes;
  shard->is_open = true;
  return true;
}

bool Checkpoint::Find(const std::string& name, CheckpointTensor* tensor,
                      std::string* why) {
  const auto place = where_.find(name);
  if (place == where_.end()) {
    *why = TensorProblem(path_, name, "missing");
    return false;
  }
  Shard& shard = *shards_[place->second];
  if (!shard.is_open && !OpenShard(&shard, why)) {
    *why += " (which " + path_ + " names for tensor " + Printable(name) + ")";
    return false;
  }
  const auto found = shard.tensors.find(name);
  if (found == shard.tensors.end()) {
    *why = TensorProblem(shard.path, name,
                         "missing, though " + path_ + " says it is here");
    return false;
  }
  const StoredTensor& stored = found->second;
  tensor->file = shard.path;
  tensor->dtype = stored.dtype;
  tensor->shape = stored.shape;
  tensor->data = shard.bytes + stored.begin;
  tensor->bytes = stored.end - stored.begin;
  return true;
}

std::vector<std::string> Checkpoint::Names() const {
  std::vector<std::string> names;
  for (const auto& [name, place] : where_) names.push_back(name);
  return names;
}

}  // namespace heed
