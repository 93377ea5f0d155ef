#include "nn/conv.h"

namespace tranship::nn {

Tensor conv(Scope m, Tensor x, int64_t out, const ConvOptions& options) {
  ir::Conv op;
  op.strides = options.stride;
  op.pads_begin = op.pads_end = std::vector<int64_t>(options.stride.size(), 0);
  op.dilations = std::vector<int64_t>(options.stride.size(), 1);
  Shape shape = {out, x.shape()[1]};
  for (const int64_t size : options.kernel) shape.dims.push_back(size);
  const Tensor weight = m.param("weight", shape);
  const Tensor bias = m.has("bias", options.bias) ? m.param("bias", {out}) : Tensor();
  return m.graph().add_one(ir::make(std::move(op)), {x, weight, bias}, m.path());
}

}  // namespace tranship::nn
