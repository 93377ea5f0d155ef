// Runs a fuzz target without libFuzzer: over each file of the corpora that are its arguments, and
// over pieces and damaged copies of it, the same ones each time.
#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <set>

#include "fuzz.h"

namespace {

namespace fs = std::filesystem;

constexpr size_t kPieces = 64;
constexpr size_t kDamagedCopies = 192;

std::string current;  // what runs now, for whoever reads why it died

void run(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
}

/// Numbers that readers trip over, in the place of one, two, four or eight bytes; or a flipped bit.
void damage(std::string& bytes, std::minstd_rand& random) {
  constexpr uint64_t kNumbers[] = {0,          1,          0x7f,        0x80,
                                   0xff,       0x7fffffff, 0x80000000u, 0xffffffffu,
                                   1ull << 62, 1ull << 63, ~0ull,       0x2222222222222222};
  const size_t at = random() % bytes.size();
  if (random() % 2 == 0) {
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
    return;
  }
  const uint64_t number = kNumbers[random() % std::size(kNumbers)];
  const size_t size = size_t{1} << random() % 4;
  std::memcpy(bytes.data() + at, &number, std::min(size, bytes.size() - at));
}

/// -> how many inputs ran.
size_t replay(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(stream), {}};
  current = file.string();
  run(whole);
  if (whole.empty()) return 1;
  for (size_t i = 0; i < kPieces; ++i) {
    const size_t size = whole.size() * i / kPieces;
    current = file.string() + ", the first " + std::to_string(size) + " bytes";
    run(whole.substr(0, size));
  }
  std::minstd_rand random(20260101);
  for (size_t i = 0; i < kDamagedCopies; ++i) {
    std::string damaged = whole;
    for (size_t count = random() % 3 + 1; count > 0; --count) damage(damaged, random);
    current = file.string() + ", damaged copy " + std::to_string(i);
    run(damaged);
  }
  return 1 + kPieces + kDamagedCopies;
}

void report(int signal) {
  std::fprintf(stderr, "replay: died of signal %d at %s\n", signal, current.c_str());
  std::_Exit(1);
}

}  // namespace

#ifdef __SANITIZE_ADDRESS__
extern "C" void __sanitizer_set_death_callback(void (*)());
#endif

int main(int argc, char** argv) {
  std::signal(SIGABRT, report);
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_set_death_callback(
      [] { std::fprintf(stderr, "replay: a sanitizer's finding at %s\n", current.c_str()); });
#endif
  size_t count = 0;
  for (int i = 1; i < argc; ++i) {
    const std::set<fs::path> files{fs::directory_iterator(argv[i]), fs::directory_iterator()};
    for (const fs::path& file : files) count += replay(file);
  }
  std::printf("%zu inputs\n", count);
  return count > 0 ? 0 : 1;
}
