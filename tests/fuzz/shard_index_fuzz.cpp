// The index of a sharded checkpoint; beside it lie two shards, with the tensors "a" and "b".
#include <unistd.h>

#include <filesystem>

#include "checkpoint/safetensors.h"
#include "fuzz.h"

using namespace tranship;

namespace {

class Folder {
 public:
  Folder()
      : path_(std::filesystem::temp_directory_path() /
              ("tranship-fuzz-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(path_);
    write_safetensors(path_ / "1.safetensors", {{"a", Tensor(DType::kF32, {2})}});
    write_safetensors(path_ / "2.safetensors", {{"b", Tensor(DType::kF32, {3})}});
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::filesystem::path index() const { return path_ / "model.safetensors.index.json"; }

 private:
  std::filesystem::path path_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Folder folder;
  fuzz::accepts([&] {
    for (const auto& [name, source] :
         open_sharded_safetensors(folder.index(), fuzz::text_of(data, size)))
      fuzz::require(name == "a" || name == "b", "a tensor comes from a shard of the folder");
  });
  return 0;
}
