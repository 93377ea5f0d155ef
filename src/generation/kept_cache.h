// What a decoder keeps from call to call, apart from what it keeps of an encoder.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "formats/onnx/session.h"
#include "generation/causal_model.h"
#include "generation/onnx_parts.h"

namespace tranship::generation {

using Outputs = std::map<std::string, onnx::Value>;

/// Inputs and outputs of decode, which each form keeps bound. Session and binding must outlive it.
class KeptCache {
 public:
  virtual ~KeptCache() = default;
  /// Begins empty, for so many rows.
  virtual void begin(int64_t num_rows) = 0;
  /// Takes what prefill gave, `length` tokens.
  virtual void take(Outputs& made, int64_t length) = 0;
  /// Before decode reads `added` tokens after `seen` others. Errors: invalid_argument if there is
  /// no room.
  virtual void prepare(int64_t seen, int64_t added) = 0;
  /// After decode has run.
  virtual void settle() = 0;
  /// Keeps the first tokens -> whether it could.
  virtual bool rewind(int64_t length) = 0;

  /// Slots, which a mask must cover; 0: there are none, and a mask covers the tokens.
  virtual int64_t num_slots() const = 0;
  virtual Room room() const = 0;
  /// In the order of the parts.
  virtual std::span<const onnx::Value> values() const = 0;
  int64_t bytes() const;
};

/// A cache that comes out of each call and goes into the next one: it grows there, or is written
/// over.
class PassedCache : public KeptCache {
 public:
  PassedCache(const onnx::Session& decode, onnx::Binding& binding, std::vector<CachePart> parts)
      : session_(&decode), binding_(&binding), parts_(std::move(parts)) {}

  void begin(int64_t num_rows) override;
  void take(Outputs& made, int64_t length) override;
  void prepare(int64_t, int64_t) override {}
  void settle() override;
  bool rewind(int64_t length) override;
  int64_t num_slots() const override { return 0; }
  Room room() const override { return {}; }
  std::span<const onnx::Value> values() const override { return values_; }

 private:
  void bind(std::vector<onnx::Value> values);

  const onnx::Session* session_;
  onnx::Binding* binding_;
  std::vector<CachePart> parts_;
  std::vector<onnx::Value> values_;
};

/// Copies the first tokens of each head.  from [B, K, *, D], to [B, K, *, D]
void copy_tokens(const onnx::Value& from, int64_t num_tokens, onnx::Value& to);

}  // namespace tranship::generation
