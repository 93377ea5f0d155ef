#include "formats/onnx/ort_cpus.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>

#include "base/atomic_file.h"

namespace tranship::onnx {
namespace {

namespace fs = std::filesystem;

class CgroupQuota : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        fs::path(testing::TempDir()) /
        ("cgroup_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const fs::path& name, std::string_view text) {
    fs::create_directories((folder_ / name).parent_path());
    write_text(folder_ / name, text);
  }
  double quota() const { return cgroup_cpu_quota(folder_ / "self", folder_ / "mount"); }

  fs::path folder_;
};

TEST_F(CgroupQuota, NoFilesMeansNoQuota) { EXPECT_EQ(quota(), 0); }

TEST_F(CgroupQuota, Version2QuotaIsItsShareOfThePeriod) {
  write("self", "0::/box\n");
  write("mount/box/cpu.max", "150000 100000\n");
  EXPECT_EQ(quota(), 1.5);
}

TEST_F(CgroupQuota, Version2MaxMeansNoQuota) {
  write("self", "0::/\n");
  write("mount/cpu.max", "max 100000\n");
  EXPECT_EQ(quota(), 0);
}

TEST_F(CgroupQuota, TheSmallestQuotaOfTheGroupsAboveCounts) {
  write("self", "0::/outer/inner\n");
  write("mount/outer/cpu.max", "200000 100000\n");
  write("mount/outer/inner/cpu.max", "800000 100000\n");
  EXPECT_EQ(quota(), 2);
}

TEST_F(CgroupQuota, Version1IsReadFromTheCpuController) {
  write("self", "5:memory:/m\n4:cpu,cpuacct:/box\n3:cpuset:/c\n");
  write("mount/cpu/box/cpu.cfs_quota_us", "300000\n");
  write("mount/cpu/box/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 3);
}

TEST_F(CgroupQuota, Version1MinusOneMeansNoQuota) {
  write("self", "4:cpu:/\n");
  write("mount/cpu/cpu.cfs_quota_us", "-1\n");
  write("mount/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 0);
}

TEST(AvailableCpus, NeverExceedTheAffinityMask) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  const int cpus = available_cpus();
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
  EXPECT_EQ(cpus, 1);
}

}  // namespace
}  // namespace tranship::onnx
