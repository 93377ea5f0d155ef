// What a model weighs, read from its graphs: nothing of the weights is read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "tasks/task.h"

namespace tranship::cli {

struct ModelFacts {
  uint64_t num_parameters = 0;         // of all components together, tied weights once
  uint64_t weight_bytes = 0;           // their bytes in the graphs' dtype: in memory when it runs
  uint64_t state_bytes_per_token = 0;  // by how much the cache of one sequence grows; 0 without one
  bool tied_embeddings = false;        // the embedding's weight serves another layer too
};
ModelFacts facts_of(const ir::Program& made);
/// Of a .pt2. Errors: those of pt2::import_program.
ModelFacts facts_of_program(const std::filesystem::path& pt2);

/// A checkpoint without files, as Checkpoint::synthetic makes it; messages name the file.
/// Errors: io; corrupt if it is not a JSON object.
Checkpoint open_config(const std::filesystem::path& path);

/// The task that is meant where none is named: "generation" for a class that generates, else
/// "forward". Errors: those of tasks::select.
std::string default_task(const Config& config, const std::string& architecture);

/// Builds the graphs of "forward" or "generation".
tasks::TaskProgram build_task(const std::string& task, const CheckpointData& checkpoint,
                              const tasks::TaskOptions& options, const Sink& sink);

}  // namespace tranship::cli
