#include "cli/progress.h"

#include <gtest/gtest.h>

#include "cli/format.h"

namespace tranship::cli {
namespace {

constexpr uint64_t kMiB = 1 << 20;

TEST(Progress, a_wide_terminal_shows_what_the_bar_the_rate_and_the_time_left) {
  EXPECT_EQ(progress_line("writing model.onnx.data", 50 * kMiB, 100 * kMiB, 0.5, 120),
            "writing model.onnx.data  [============>           ]  50.0 MiB of 100 MiB  100 MiB/s  "
            "500 ms left");
}

TEST(Progress, a_finished_job_has_a_full_bar_and_no_time_left) {
  EXPECT_EQ(progress_line("writing", kMiB, kMiB, 1, 100),
            "writing  [========================]  1.00 MiB of 1.00 MiB  1.00 MiB/s");
}

TEST(Progress, nothing_done_has_no_rate) {
  EXPECT_EQ(progress_line("writing", 0, kMiB, 0, 100),
            "writing  [>                       ]  0 B of 1.00 MiB");
  EXPECT_EQ(progress_line("writing", 0, 0, 1, 100),
            "writing  [========================]  0 B of 0 B");
}

TEST(Progress, the_bar_is_shorter_in_a_terminal_of_80_columns) {
  const std::string line =
      progress_line("writing prefill.onnx.data", 256 * kMiB, 512 * kMiB, 1, 80);
  EXPECT_NE(line.find("[===>   ]"), line.npos) << line;
}

TEST(Progress, a_line_is_never_wider_than_the_terminal) {
  for (size_t width = 20; width < 120; ++width) {
    const std::string line = progress_line("writing a_file_with_a_long_name.onnx.data", 312 * kMiB,
                                           513 * kMiB, 0.26, width);
    EXPECT_LE(display_width(line), width) << line;
    EXPECT_NE(line.find("312 MiB of"), line.npos) << line;
  }
}

TEST(Progress, more_done_than_there_is_to_do_does_not_overflow_the_bar) {
  EXPECT_EQ(progress_line("writing", 2 * kMiB, kMiB, 1, 100),
            "writing  [========================]  2.00 MiB of 1.00 MiB  2.00 MiB/s");
}

}  // namespace
}  // namespace tranship::cli
