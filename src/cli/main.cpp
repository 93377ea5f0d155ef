// The program `tranship`.
#include "cli/cli.h"

int main(int argc, char** argv) { return tranship::cli::run(argc, argv); }
