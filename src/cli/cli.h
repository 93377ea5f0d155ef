// The command line: tranship COMMAND [OPTIONS].
#pragma once

namespace tranship::cli {

/// Runs one command, and prints what it has to say. -> the exit code: 0 done, 1 an error, 2 not
/// written as it must be.
int run(int argc, char** argv);

}  // namespace tranship::cli
