// How many processors this process may use: what a thread pool should be sized by.
#pragma once

#include <filesystem>

namespace tranship::onnx {

/// The processors that this process may run on, cut to the CPU quota of its control group (a
/// container's limit), rounded up; at least 1.
int available_cpus();

/// The CPU quota in processors (1.5 is one and a half), the smallest of the group and those above
/// it; 0 for no quota. `self` is the process's own list of groups (/proc/self/cgroup), `root` where
/// the group files are mounted
/// (/sys/fs/cgroup). Understands both versions of control groups; what cannot be read sets no
/// quota.
double cgroup_cpu_quota(const std::filesystem::path& self, const std::filesystem::path& root);

}  // namespace tranship::onnx
