// The rules of the house that a compiler does not check: who may include whom, how long a file may
// be, who may print.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// The folders of src/ in the order the data flows (DESIGN.md): each includes only itself and those
// before it.
constexpr std::array<std::string_view, 14> kFolders = {
    "base",  "ir",     "interpret",    "checkpoint", "text",      "nn",         "models",
    "tasks", "passes", "quantization", "formats",    "exporters", "generation", "cli"};
// These work on graphs alone: they know no definitions.
const std::set<std::string_view> kGraphFolders = {"passes", "quantization", "formats"};
const std::set<std::string_view> kDefinitionFolders = {"nn", "models", "tasks"};

constexpr int64_t kMaxLines = 800;

struct Source {
  std::string path;  // from the root of the repository: "src/ir/op.cpp"
  std::string text;
};

std::vector<Source> sources_under(const std::vector<std::string>& folders) {
  const fs::path root = TRANSHIP_SOURCE_DIR;
  std::vector<Source> out;
  for (const std::string& folder : folders) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / folder)) {
      const fs::path& path = entry.path();
      if (path.extension() != ".cpp" && path.extension() != ".h") continue;
      std::ostringstream text;
      text << std::ifstream(path, std::ios::binary).rdbuf();
      out.push_back({fs::relative(path, root).generic_string(), text.str()});
    }
  }
  std::ranges::sort(out, {}, &Source::path);
  return out;
}

bool is_test(const Source& source) {
  return source.path.ends_with("_test.cpp") || source.path.ends_with("/testing.h") ||
         source.path.ends_with("/testing.cpp");
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) out.push_back(line);
  return out;
}

std::string without_comment(const std::string& line) { return line.substr(0, line.find("//")); }

// "src/formats/onnx/lower.cpp", 1 -> "formats"; parts count from 0.
std::string part(const std::string& path, size_t index) {
  std::istringstream stream(path);
  std::string out;
  for (size_t i = 0; i <= index; ++i) {
    if (!std::getline(stream, out, '/')) return "";
  }
  return out;
}

// "src/models/llama_test.cpp" -> "llama".
std::string stem_of(const std::string& path) {
  std::string stem = fs::path(path).stem().string();
  if (stem.ends_with("_test")) stem.resize(stem.size() - 5);
  return stem;
}

std::vector<std::string> quoted_includes(const Source& source) {
  static const std::regex include("^\\s*#\\s*include\\s*\"([^\"]+)\"");
  std::vector<std::string> out;
  for (const std::string& line : lines_of(source.text)) {
    std::smatch match;
    if (std::regex_search(line, match, include)) out.push_back(match[1]);
  }
  return out;
}

ptrdiff_t rank(std::string_view folder) {
  return std::ranges::find(kFolders, folder) - kFolders.begin();
}

// Why a file of src/ may not include this, or "". `models` are the stems of the files in models/.
std::string objection(const Source& source, const std::string& include,
                      const std::set<std::string>& models) {
  const std::string from = part(source.path, 1);
  const std::string to = part(include, 0);
  if (to == "tranship") return "";
  if (include.find('/') == std::string::npos) {
    return from == "formats" && source.path.ends_with(".cpp")
               ? ""
               : "is generated: only a .cpp of formats/ may";
  }
  if (rank(to) == std::ssize(kFolders)) return "is in no folder of src/";
  if (rank(to) > rank(from)) return "is in a folder that comes later";
  if (kGraphFolders.contains(from) && kDefinitionFolders.contains(to))
    return "is a definition: this works on graphs";
  if (from == "formats" && to == "formats") {
    const bool shared = part(include, 2).empty();
    if (!shared && part(include, 1) != part(source.path, 2)) return "is another format";
  }
  if (from == "models" && to == "models") {
    const std::string other = stem_of(include);
    if (other != stem_of(source.path) && models.contains(other)) return "is another model";
  }
  return "";
}

std::vector<std::string> include_violations(const std::vector<Source>& sources) {
  // Each .cpp of models/ is a model, save the table of them; what several share is a header alone.
  std::set<std::string> models;
  for (const Source& source : sources) {
    if (part(source.path, 1) == "models" && source.path.ends_with(".cpp") && !is_test(source)) {
      models.insert(stem_of(source.path));
    }
  }
  models.erase("registry");
  std::vector<std::string> out;
  for (const Source& source : sources) {
    for (const std::string& include : quoted_includes(source)) {
      const std::string why = objection(source, include, models);
      if (!why.empty()) out.push_back(source.path + ": \"" + include + "\" " + why);
    }
  }
  return out;
}

// "path:line: text" of each line, without its comment, that matches.
std::vector<std::string> matches(const Source& source, const std::regex& pattern) {
  std::vector<std::string> out;
  const std::vector<std::string> lines = lines_of(source.text);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (std::regex_search(without_comment(lines[i]), pattern)) {
      out.push_back(source.path + ":" + std::to_string(i + 1) + ": " + lines[i]);
    }
  }
  return out;
}

const std::regex& printing() {
  static const std::regex pattern(
      "std::(cout|cerr|clog)|\\b(fmt::print|std::print|printf|fprintf|puts|perror)\\s*\\(|"
      "\\b(abort|exit|_exit|quick_exit|terminate)\\s*\\(");
  return pattern;
}

const std::regex& model_type_comparison() {
  static const std::regex pattern(
      "model_type(\\(\\))?\"?\\)?\\s*[=!]=|[=!]=\\s*[A-Za-z_.>-]*model_type\\b");
  return pattern;
}

TEST(House, includes_go_one_way) {
  EXPECT_THAT(include_violations(sources_under({"src"})), IsEmpty());
}

TEST(House, includes_that_go_the_wrong_way_are_found) {
  const auto violations = [](std::string path, const std::string& include) {
    return include_violations({{std::move(path), "#include \"" + include + "\"\n"},
                               {"src/models/llama.cpp", ""},
                               {"src/models/registry.cpp", ""}});
  };
  EXPECT_THAT(violations("src/ir/op.cpp", "base/error.h"), IsEmpty());
  EXPECT_THAT(violations("src/ir/op.cpp", "tranship/dtype.h"), IsEmpty());
  EXPECT_THAT(violations("src/base/json.cpp", "ir/op.h"), SizeIs(1));
  EXPECT_THAT(violations("src/ir/op.cpp", "elsewhere/op.h"), SizeIs(1));
  EXPECT_THAT(violations("src/formats/onnx/lower.cpp", "nn/rope.h"), SizeIs(1));
  EXPECT_THAT(violations("src/formats/onnx/lower.cpp", "formats/pt2/write.h"), SizeIs(1));
  EXPECT_THAT(violations("src/formats/onnx/lower.cpp", "formats/onnx/write.h"), IsEmpty());
  EXPECT_THAT(violations("src/formats/onnx/lower.cpp", "formats/format.h"), IsEmpty());
  EXPECT_THAT(violations("src/formats/onnx/write.cpp", "onnx-ml.pb.h"), IsEmpty());
  EXPECT_THAT(violations("src/formats/onnx/write.h", "onnx-ml.pb.h"), SizeIs(1));
  EXPECT_THAT(violations("src/models/mistral.cpp", "models/llama.h"), SizeIs(1));
  EXPECT_THAT(violations("src/models/llama_test.cpp", "models/llama.h"), IsEmpty());
  EXPECT_THAT(violations("src/models/mistral.cpp", "models/registry.h"), IsEmpty());
  EXPECT_THAT(violations("src/models/mistral.cpp", "models/family.h"), IsEmpty());
}

TEST(House, public_headers_name_no_third_party) {
  static const std::regex include("^\\s*#\\s*include\\s*(\"(?!tranship/)|<[a-z_0-9]+[/.])");
  EXPECT_THAT(matches({"a.h", "#include <vector>\n#include \"tranship/error.h\"\n"}, include),
              IsEmpty());
  EXPECT_THAT(matches({"a.h", "#include <nlohmann/json.hpp>\n#include \"base/json.h\"\n"}, include),
              SizeIs(2));
  for (const Source& source : sources_under({"include"}))
    EXPECT_THAT(matches(source, include), IsEmpty());
}

TEST(House, model_type_is_compared_in_one_place) {
  EXPECT_THAT(
      matches({"a.cpp", "if (c.text(\"model_type\") == \"llama\")\nif (\"bert\" != model_type)\n"},
              model_type_comparison()),
      SizeIs(2));
  EXPECT_THAT(matches({"a.cpp", "return table.at(model_type);  // model_type == \"llama\"\n"},
                      model_type_comparison()),
              IsEmpty());
  std::map<std::string, std::vector<std::string>> places;
  for (const Source& source : sources_under({"src"})) {
    if (is_test(source)) continue;
    std::vector<std::string> found = matches(source, model_type_comparison());
    if (!found.empty()) places[source.path] = std::move(found);
  }
  EXPECT_LE(places.size(), 1U) << testing::PrintToString(places);
}

TEST(House, only_the_command_line_prints_or_exits) {
  const std::string bad = "std::cout << 1;\nfmt::print(\"x\");\nif (x) std::abort();\nexit(1);\n";
  EXPECT_THAT(matches({"a.cpp", bad}, printing()), SizeIs(4));
  EXPECT_THAT(
      matches({"a.cpp", "fmt::format(\"x\");  // never exit()\nsnprintf(b, n, f);\n"}, printing()),
      IsEmpty());
  for (const Source& source : sources_under({"src"})) {
    if (part(source.path, 1) == "cli" || is_test(source)) continue;
    EXPECT_THAT(matches(source, printing()), IsEmpty());
  }
}

TEST(House, files_stay_short) {
  for (const Source& source : sources_under({"src", "include", "tests"})) {
    EXPECT_LE(std::ssize(lines_of(source.text)), kMaxLines)
        << source.path << " has outgrown its room: split it";
  }
}

TEST(House, folders_keep_their_line_budget) {
  std::map<std::string, int64_t> budget;
  std::ifstream file(fs::path(TRANSHIP_SOURCE_DIR) / "tests/line_budget.txt");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(without_comment(line));
    std::string folder;
    int64_t lines = 0;
    if (words >> folder >> lines) budget[folder] = lines;
  }
  std::map<std::string, int64_t> used;
  for (const Source& source : sources_under({"src"})) {
    if (is_test(source)) continue;
    const std::string folder = part(source.path, 1) == "formats" ? "formats/" + part(source.path, 2)
                                                                 : part(source.path, 1);
    used[folder] += std::ssize(lines_of(source.text));
  }
  for (const auto& [folder, lines] : used) {
    EXPECT_LE(lines, budget[folder]) << folder << " is over its line of tests/line_budget.txt";
  }
}

TEST(House, tests_that_the_list_of_anomalies_names_exist) {
  std::string tests;
  for (const Source& source : sources_under({"src", "tests"})) {
    if (is_test(source)) tests += source.text;
  }
  std::ifstream file(fs::path(TRANSHIP_SOURCE_DIR) / "tests/anomalies/README.md");
  const std::string list((std::istreambuf_iterator<char>(file)), {});
  static const std::regex named("`([A-Z][A-Za-z0-9]*)\\.([a-z]\\w*)[^`]*`");
  int64_t count = 0;
  for (std::sregex_iterator it(list.begin(), list.end(), named), end; it != end; ++it) {
    const std::string test = "(" + it->str(1) + ", " + it->str(2) + ")";
    EXPECT_NE(tests.find(test), std::string::npos) << it->str() << " is no test";
    ++count;
  }
  EXPECT_GT(count, 40);
}

TEST(House, sources_are_ascii_and_headers_are_read_once) {
  for (const Source& source : sources_under({"src", "include", "tests"})) {
    const auto non_ascii = std::ranges::find_if(
        source.text, [](char c) { return static_cast<unsigned char>(c) > 126; });
    EXPECT_EQ(non_ascii - source.text.begin(), std::ssize(source.text))
        << source.path << ": a byte is not ASCII";
    if (source.path.ends_with(".h")) {
      EXPECT_NE(source.text.find("#pragma once\n"), std::string::npos) << source.path;
    }
  }
}

TEST(House, unfinished_work_names_its_issue) {
  static const std::regex unfinished(
      "\\b(TO"
      "DO(?!\\(#[0-9]+\\))|FIX"
      "ME|XX"
      "X)\\b");
  EXPECT_TRUE(
      std::regex_search("// TO"
                        "DO: later",
                        unfinished));
  EXPECT_FALSE(
      std::regex_search("// TO"
                        "DO(#12): later",
                        unfinished));
  for (const Source& source : sources_under({"src", "include", "tests"})) {
    EXPECT_FALSE(std::regex_search(source.text, unfinished)) << source.path;
  }
}

TEST(House, paths_are_taken_apart) {
  EXPECT_EQ(part("src/formats/onnx/lower.cpp", 2), "onnx");
  EXPECT_EQ(part("base/error.h", 5), "");
  EXPECT_EQ(stem_of("src/models/llama_test.cpp"), "llama");
  EXPECT_THAT(quoted_includes({"a.h", "#include <map>\n  # include \"ir/op.h\"\n"}),
              ElementsAre("ir/op.h"));
}

}  // namespace
