// The tensors of a checkpoint by name: one .safetensors file, or several that a
// model.safetensors.index.json lists.
//
// It is here and not in runtime/ because the library has no need of it: a block
// takes its weights as pointers, from wherever they come, and a library that
// reads no checkpoints cannot be harmed by one.
#ifndef HEED_TUNE_CHECKPOINT_H_
#define HEED_TUNE_CHECKPOINT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tune/mapped_file.h"
#include "tune/safetensors.h"

namespace heed {

struct CheckpointTensor {
  std::string file;   // the path of the file it is in
  std::string dtype;  // safetensors' name: "F32", "F16", "BF16", ...
  std::vector<int64_t> shape;
  const unsigned char* data = nullptr;  // C order, of any alignment
  size_t bytes = 0;
};

// Read-only. Every failure is one line that begins with a file's path.
class Checkpoint {
 public:
  // `path` is a folder with a model.safetensors, or else a
  // model.safetensors.index.json; or one of such files, of any name. Reads the
  // header or the index; the files of an index are opened when a tensor of
  // theirs is asked for.
  bool Open(const std::string& path, std::string* why);

  // The same of bytes that are there already and stay there: one .safetensors
  // file, which messages call `name`.
  bool OpenBytes(const std::string& name, const unsigned char* bytes,
                 size_t size, std::string* why);

  // The folder that the files lie in, where a config.json may be.
  const std::string& folder() const { return folder_; }
  // What was opened: a .safetensors file or an index.
  const std::string& path() const { return path_; }

  bool Has(const std::string& name) const { return where_.count(name) != 0; }
  // `data` stay valid for as long as the checkpoint lives.
  bool Find(const std::string& name, CheckpointTensor* tensor,
            std::string* why);
  std::vector<std::string> Names() const;

 private:
  struct Shard {
    std::string path;
    bool is_open = false;
    MappedFile file;
    const unsigned char* bytes = nullptr;
    std::map<std::string, StoredTensor> tensors;
  };

  bool OpenIndex(std::string* why);
  bool OpenShard(Shard* shard, std::string* why);
  bool ReadShard(const unsigned char* bytes, size_t size, Shard* shard,
                 std::string* why);

  std::string path_, folder_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::map<std::string, size_t> where_;  // tensor to place in shards_
};

// "<file>: tensor <name>: <reason>"
std::string TensorProblem(const std::string& file, const std::string& name,
                          const std::string& reason);

// A text file beside a checkpoint, of at most `max_bytes`. On failure returns
// false and says why in one line that begins with the path.
bool ReadSmallFile(const std::string& path, size_t max_bytes, std::string* text,
                   std::string* why);

}  // namespace heed

#endif  // HEED_TUNE_CHECKPOINT_H_
