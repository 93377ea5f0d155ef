#include "formats/onnx/ort_cpus.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

namespace tranship::onnx {
namespace {

namespace fs = std::filesystem;

/// The text of a small file of the kernel. Such files claim a length of 0, so they are read, not
/// mapped.
std::optional<std::string> kernel_file(const fs::path& path) {
  std::FILE* file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return std::nullopt;
  std::array<char, 65536> buffer;
  const size_t size = std::fread(buffer.data(), 1, buffer.size(), file);
  std::fclose(file);
  return std::string(buffer.data(), size);
}

double ratio(double quota, double period) { return quota > 0 && period > 0 ? quota / period : 0; }

/// The quota that one group's folder sets, whichever version's files it has; 0 for none.
double folder_quota(const fs::path& folder) {
  if (const auto text =
          kernel_file(folder / "cpu.max")) {  // version 2: "150000 100000", or "max 100000"
    char* rest = nullptr;
    const double quota = std::strtod(text->c_str(), &rest);
    return ratio(quota, std::strtod(rest, nullptr));
  }
  const auto quota = kernel_file(folder / "cpu.cfs_quota_us");  // version 1: -1 for none
  const auto period = kernel_file(folder / "cpu.cfs_period_us");
  if (!quota || !period) return 0;
  return ratio(std::strtod(quota->c_str(), nullptr), std::strtod(period->c_str(), nullptr));
}

double smaller_quota(double a, double b) {
  if (a == 0 || b == 0) return std::max(a, b);
  return std::min(a, b);
}

/// The smallest quota of `group` (a path from the mount's root) and of all groups above it.
double smallest_quota(const fs::path& mount, const fs::path& group) {
  double smallest = 0;
  for (fs::path at = group.relative_path();; at = at.parent_path()) {
    smallest = smaller_quota(smallest, folder_quota(mount / at));
    if (at.empty()) return smallest;
  }
}

/// The quota by one line of a process's list: "0::/group" in version 2, "4:cpu,cpuacct:/group" in
/// version 1.
double line_quota(std::string_view line, const fs::path& root) {
  const size_t first = line.find(':');
  if (first == std::string_view::npos) return 0;
  const size_t second = line.find(':', first + 1);
  if (second == std::string_view::npos) return 0;
  const std::string controllers =
      "," + std::string(line.substr(first + 1, second - first - 1)) + ",";
  const std::string_view group = line.substr(second + 1);
  if (controllers == ",,") return smallest_quota(root, group);
  if (controllers.find(",cpu,") == std::string::npos) return 0;
  return smallest_quota(root / "cpu", group);
}

}  // namespace

double cgroup_cpu_quota(const std::filesystem::path& self, const std::filesystem::path& root) {
  const std::string list = kernel_file(self).value_or("");
  double smallest = 0;
  for (std::string_view rest = list; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    smallest = smaller_quota(smallest, line_quota(rest.substr(0, end), root));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return smallest;
}

int available_cpus() {
  int cpus = static_cast<int>(std::thread::hardware_concurrency());
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) cpus = CPU_COUNT(&set);
  const double quota = cgroup_cpu_quota("/proc/self/cgroup", "/sys/fs/cgroup");
  if (quota > 0) cpus = std::min(cpus, static_cast<int>(std::ceil(quota)));
  return std::max(cpus, 1);
}

}  // namespace tranship::onnx
