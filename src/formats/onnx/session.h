// An ONNX model that runs on ONNX Runtime.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "formats/onnx/ort_value.h"
#include "tranship/dtype.h"
#include "tranship/sink.h"
#include "tranship/tensor.h"

namespace tranship::onnx {

class WeightPool;

/// How much ONNX Runtime rewrites a graph when it loads it.
enum class GraphOptimization { kNone, kBasic, kExtended, kAll };

/// The least of what ONNX Runtime says that reaches Sink::warning.
enum class LogLevel { kVerbose, kInfo, kWarning, kError };

/// More would be a mistake, and ONNX Runtime would start them all.
inline constexpr int kMostThreads = 1024;

struct SessionOptions {
  /// libonnxruntime.so or a folder that has it; empty: searched for, as OrtLibrary::open says.
  std::filesystem::path library = {};
  /// Threads within one operator; 0: as many as the process may use (affinity and the container's
  /// quota count).
  int intra_op_threads = 0;
  /// Operators that run side by side.
  int inter_op_threads = 1;
  /// "cpu", "cuda" or "cuda:1". CUDA is written after ONNX Runtime's documented interface, but has
  /// not been run: no machine with a GPU was there when it was written.
  std::string device = "cpu";
  GraphOptimization optimization = GraphOptimization::kAll;
  LogLevel log_level = LogLevel::kWarning;
  /// Memory that was used once is kept for the next run.
  bool memory_arena = true;
  /// One block for all of a run's tensors, if an earlier run had inputs of the same shapes.
  bool memory_pattern = true;
  /// Session configuration by ONNX Runtime's own keys ("session.disable_prepacking": "1").
  std::map<std::string, std::string> config = {};
  /// Sessions with the same one have their weights in memory once (on the CPU; another device has
  /// its own). Of the session's library.
  std::shared_ptr<WeightPool> weights = {};
};

/// An input or an output of a graph.
struct ValueInfo {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;          // -1 where a dimension is symbolic or unknown
  std::vector<std::string> dim_names;  // empty where a dimension has a number or no name
};

struct SessionState;

/// A loaded model. May be moved; its bindings must go before it, values may stay.
/// All const functions may be called from several threads at once.
class Session {
 public:
  /// Loads a model, with its external data from the same folder. What ONNX Runtime has to say about
  /// it goes to `sink`, which is kept; it may be called from other threads, by one at a time, and
  /// must not use the session. Errors: as OrtLibrary::open; io if there is no such file; corrupt if
  /// it is not a valid model, with an operator that nobody knows or without its external data, for
  /// example; unsupported if this ONNX Runtime has no kernel for an operator or lacks the device
  /// (with those it has), or if an input or output is not a tensor of a known dtype;
  /// invalid_argument for a bad option.
  static Session open(const std::filesystem::path& path, const SessionOptions& options = {},
                      const Sink& sink = {});
  /// The same for `model`, bytes of an .onnx that stand for the file at `path`: external data is
  /// read from that file's folder, and messages name it. Needs ONNX Runtime 1.19 if there is any.
  static Session open_edited(const std::filesystem::path& path, Bytes model,
                             const SessionOptions& options = {}, const Sink& sink = {});
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  const std::vector<ValueInfo>& inputs() const;
  const std::vector<ValueInfo>& outputs() const;
  /// The version of ONNX Runtime that runs it: "1.31.1".
  const std::string& runtime_version() const;

  /// Runs the model. The inputs are read where they are; all outputs are returned.
  /// Errors: invalid_argument if an input is missing, is unknown, or has another dtype, rank or
  /// fixed dimension than the model says (all of a kind at once), or if an operator fails on them;
  /// unsupported if this ONNX Runtime has no kernel for one.
  NamedTensors run(const NamedTensors& inputs) const;

  /// A tensor in host memory of ONNX Runtime, its elements not set. Errors: invalid_argument for a
  /// bad shape.
  Value allocate(DType dtype, const std::vector<int64_t>& shape) const;
  /// A tensor over the caller's memory, which must outlive it and every run it takes part in.
  /// Errors: invalid_argument if `bytes` is not exactly what dtype and shape need.
  Value over(DType dtype, const std::vector<int64_t>& shape, std::span<std::byte> bytes) const;
  /// The same over a tensor.
  Value over(Tensor& tensor) const;

  const SessionState& state() const { return *state_; }

 private:
  explicit Session(std::unique_ptr<SessionState> state);
  std::unique_ptr<SessionState> state_;
};

/// Where an output that ONNX Runtime allocates is put.
enum class Place {
  kHost,    // memory that the processor reads
  kDevice,  // the memory of the session's device: for what goes back in at the next step
};

/// Inputs and outputs that stay in place from run to run: what a decode loop needs. An output of
/// one step becomes an input of the next by binding its value: nothing is copied.
///
///   Binding step(session);
///   step.bind_input("past", cache);  step.bind_output("present");
///   step.run();
///   cache = step.output("present");      // and again
///
/// Keeps what is bound alive (but not the caller's memory under a value). The session must outlive
/// it. For one thread at a time; several bindings of one session may run at once.
class Binding {
 public:
  explicit Binding(const Session& session);
  ~Binding();
  Binding(Binding&&) noexcept;
  Binding& operator=(Binding&&) noexcept;

  /// Errors: invalid_argument if there is no such input or output, or the value does not fit it.
  void bind_input(const std::string& name, const Value& value);
  /// Puts the output into a value of exactly its size. It may be one that is bound as an input too,
  /// where the operator works in place.
  void bind_output(const std::string& name, Value& value);
  /// Puts the output into new memory at each run.
  void bind_output(const std::string& name, Place place = Place::kHost);
  /// Forgets all that is bound.
  void clear();

  /// Errors: invalid_argument if an input is not bound (all of them), or no output is; else what
  /// ONNX Runtime says.
  void run();

  /// An output of the last run. Errors: invalid_argument if it is not bound or nothing was run.
  Value output(const std::string& name) const;
  /// All bound outputs of the last run, by name. Errors: invalid_argument if nothing was run since
  /// the last change.
  std::map<std::string, Value> outputs() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tranship::onnx
