#include "ir/text.h"

#include <map>

#include "base/error.h"
#include "ir/attributes.h"

namespace tranship::ir {
namespace {

void print_graph(const Graph& g, size_t depth, std::string& out) {
  const std::string indent(2 * depth, ' ');
  const auto value = [](ValueId id) {
    return id == kAbsent ? std::string("_") : "%" + std::to_string(id);
  };
  out += indent + "graph " + g.name() + "\n";
  for (const auto& [symbol, range] : g.symbols()) {
    out += fmt::format("{}  range {} {} {}\n", indent, symbol, range.min,
                       range.max ? std::to_string(*range.max) : "any");
  }
  for (const Assumption& a : g.assumptions())
    out += fmt::format("{}  assume {} == {}\n", indent, a.a.text(), a.b.text());
  for (const Node& n : g.nodes()) {
    std::string results, operands, types;
    for (const ValueId id : n.outputs) {
      results += (results.empty() ? "" : ", ") + value(id);
      types += (types.empty() ? "" : ", ") + g.type(id).text();
    }
    for (const ValueId id : n.inputs) operands += (operands.empty() ? "" : ", ") + value(id);
    std::string op = text(*n.op);
    if (!operands.empty()) op.insert(name(n.kind()).size(), "(" + operands + ")");
    out += fmt::format("{}  {} = {} : {}{}\n", indent, results, op, types,
                       n.name.empty() ? "" : " @" + n.name);
    for (const auto& sub : n.graphs) print_graph(*sub, depth + 2, out);
  }
  for (const Output& o : g.outputs())
    out += fmt::format("{}  output {} {}\n", indent, o.name, value(o.value));
  out += indent + "end\n";
}

template <class T>
OpPtr parse_fields(std::string_view attributes) {
  T op;
  for (const std::string_view item : split_list(attributes)) {
    const size_t equals = item.find('=');
    const std::string_view key = item.substr(0, equals);
    bool known = false;
    if (equals != std::string_view::npos) {
      std::apply(
          [&](const auto&... f) {
            ((f.name == key ? (parse_attribute(item.substr(equals + 1), op.*f.member), known = true)
                            : false),
             ...);
          },
          T::fields());
    }
    if (!known)
      fail(ErrorKind::kInvalidArgument, "[ir text] {} has no attribute '{}'", name(T::kKind), key);
  }
  return make(std::move(op));
}

OpPtr parse_op(OpKind kind, std::string_view attributes) {
  return visit_kind(kind, [&]<class T>() { return parse_fields<T>(attributes); });
}

class GraphParser {
 public:
  explicit GraphParser(std::string_view text) : text_(text) {}

  std::unique_ptr<Graph> all() {
    auto graph = parse_graph(0);
    for (std::string_view line; next(line);) error("text after the graph's end");
    return graph;
  }

 private:
  static constexpr int kMaxDepth = 64;
  using Names = std::map<std::string, Value, std::less<>>;

  template <class... Args>
  [[noreturn]] void error(fmt::format_string<Args...> format, const Args&... args) const {
    fail(ErrorKind::kCorrupt, "[ir text] line {}: {}", line_,
         fmt::vformat(fmt::string_view(format), fmt::make_format_args(args...)));
  }

  /// The next line that is not empty, without indentation.
  bool next(std::string_view& line) {
    while (!text_.empty()) {
      const size_t end = std::min(text_.find('\n'), text_.size());
      line = text_.substr(0, end);
      text_.remove_prefix(std::min(end + 1, text_.size()));
      ++line_;
      while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
      if (!line.empty() && line.front() != '#') return true;
    }
    return false;
  }

  static std::string_view word(std::string_view& line) {
    const size_t end = std::min(line.find(' '), line.size());
    const std::string_view w = line.substr(0, end);
    line.remove_prefix(std::min(end + 1, line.size()));
    return w;
  }

  std::unique_ptr<Graph> parse_graph(int depth) {
    if (depth > kMaxDepth) error("graphs nest more than {} deep", kMaxDepth);
    std::string_view line;
    if (!next(line) || word(line) != "graph") error("expected 'graph NAME'");
    auto graph = std::make_unique<Graph>(std::string(line));
    Names names;
    while (next(line)) {
      if (line == "end") return graph;
      std::string_view rest = line;
      const std::string_view first = word(rest);
      if (first == "range") {
        parse_range(*graph, rest);
      } else if (first == "assume") {
        const size_t at = rest.find(" == ");
        if (at == std::string_view::npos) error("expected 'assume A == B'");
        graph->assume(Dim::parse(rest.substr(0, at)), Dim::parse(rest.substr(at + 4)));
      } else if (first == "output") {
        const std::string_view output_name = word(rest);
        graph->add_output(std::string(output_name), operand(names, rest));
      } else {
        parse_node(*graph, names, line, depth);
      }
    }
    error("'end' of graph '{}' is missing", graph->name());
  }

  void parse_range(Graph& graph, std::string_view rest) {
    const std::string symbol(word(rest));
    Range range;
    parse_attribute(word(rest), range.min);
    if (rest != "any") {
      range.max = 0;
      parse_attribute(rest, *range.max);
    }
    graph.set_range(symbol, range);
  }

  Value operand(const Names& names, std::string_view text) const {
    if (text == "_") return {};
    const auto it = names.find(text);
    if (it == names.end()) error("'{}' is not a value above", text);
    return it->second;
  }

  /// Cuts `line` at `mark` where it stands outside quotes and brackets; -> what follows the mark.
  static std::string_view cut(std::string_view& line, std::string_view mark) {
    const size_t at = find_outside(line, mark);
    if (at == std::string_view::npos) return {};
    const std::string_view rest = line.substr(at + mark.size());
    line = line.substr(0, at);
    return rest;
  }

  void parse_node(Graph& graph, Names& names, std::string_view line, int depth) {
    const std::string_view node_name = cut(line, " @");
    const std::string_view types = cut(line, " : ");
    std::string_view results = line;
    std::string_view op = cut(results, " = ");
    if (op.empty())
      error("expected '%N = Op(...) {{...}} : type', 'output', or 'end'; found '{}'", line);
    std::string_view attributes = cut(op, " {");
    if (!attributes.empty()) {
      if (attributes.back() != '}') error("attributes are not closed by '}}'");
      attributes.remove_suffix(1);
    }
    std::string_view operands;
    if (const size_t open = op.find('('); open != std::string_view::npos) {
      if (op.back() != ')') error("operands are not closed by ')'");
      operands = op.substr(open + 1, op.size() - open - 2);
      op = op.substr(0, open);
    }
    const auto kind = find_op_kind(op);
    if (!kind) error("no op is named '{}'", op);
    std::vector<Value> inputs;
    for (const std::string_view item : split_list(operands)) inputs.push_back(operand(names, item));
    const OpPtr parsed = parse_op(*kind, attributes);
    const size_t num_graphs =
        *kind == OpKind::kIf ? 2 : (*kind == OpKind::kLoop || *kind == OpKind::kScan ? 1 : 0);
    std::vector<std::unique_ptr<Graph>> graphs;
    for (size_t i = 0; i < num_graphs; ++i) graphs.push_back(parse_graph(depth + 1));
    const std::vector<Value> made =
        graph.add(parsed, inputs, std::string(node_name), std::move(graphs));
    bind(names, results, made);
    check_types(made, types);
  }

  void bind(Names& names, std::string_view results, const std::vector<Value>& made) const {
    const std::vector<std::string_view> items = split_list(results);
    if (items.size() != made.size())
      error("{} results are named, the op has {}", items.size(), made.size());
    for (size_t i = 0; i < items.size(); ++i) {
      if (items[i].size() < 2 || items[i][0] != '%') error("'{}' is not a value's name", items[i]);
      if (!names.emplace(std::string(items[i]), made[i]).second)
        error("'{}' is made twice", items[i]);
    }
  }

  void check_types(const std::vector<Value>& made, std::string_view types) const {
    if (types.empty()) return;
    const std::vector<std::string_view> items = split_list(types);
    for (size_t i = 0; i < made.size(); ++i) {
      const std::string found = made[i].type().text();
      if (i >= items.size() || found != items[i]) {
        error("the type is {}, the text says {}", found,
              i < items.size() ? items[i] : std::string_view("nothing"));
      }
    }
  }

  std::string_view text_;
  size_t line_ = 0;
};

}  // namespace

std::string print(const Graph& graph) {
  std::string out;
  print_graph(graph, 0, out);
  return out;
}

std::unique_ptr<Graph> parse(std::string_view text) { return GraphParser(text).all(); }

}  // namespace tranship::ir
