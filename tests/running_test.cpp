// docs/running.md: what it quotes is what is compiled and run here (its Python in interop/).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/atomic_file.h"
#include "base/json.h"
#include "base/testing.h"
#include "formats/onnx/ort_test_support.h"
#include "models/families.h"
#include "tranship/exporters.h"
#include "tranship/generation.h"

namespace tranship {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const fs::path kRoot = TRANSHIP_SOURCE_DIR;

TEST(RunningPage, quotes_its_programs_as_they_are) {
  const std::string page = read_text(kRoot / "docs/running.md");
  EXPECT_THAT(page, HasSubstr("```cpp\n" + read_text(kRoot / "docs/running/generate.cpp") + "```"));
  EXPECT_THAT(page,
              HasSubstr("```python\n" + read_text(kRoot / "docs/running/generate.py") + "```"));
}

class RunningProgram : public onnx::NeedsOnnxRuntime {};

TEST_F(RunningProgram, says_what_the_generator_says) {
  const TestFolder folder;
  const fs::path files = kRoot / "tests/cases/tokenizer/bytelevel",
                 artifact = folder.path() / "out";
  Json config = Json::parse(models::find_family("llama")->tiny_config);
  config["vocab_size"] = Tokenizer::open(files).vocab_size();
  config["max_position_embeddings"] = 4096;
  OnnxExporter()
      .export_for_generation(Checkpoint::synthetic(config.dump()), {.dynamic = true})
      .save_pretrained(artifact);
  for (const auto& file : fs::directory_iterator(files))
    fs::copy_file(file.path(), artifact / file.path().filename(), fs::copy_options::skip_existing);

  const std::string out = (folder.path() / "said").string(), error = out + ".error";
  const std::string command = std::string(TRANSHIP_EXAMPLE) + " " + artifact.string() +
                              " 'The quick' 'brown fox' >" + out + " 2>" + error;
  const int status = std::system(command.c_str());
  ASSERT_EQ(WEXITSTATUS(status), 0) << read_text(error);

  Generator generator = Generator::open(artifact);
  Conversation conversation(generator, {{"system", "Be brief."}});
  std::string expected;
  for (const char* said : {"The quick", "brown fox"}) {
    expected += conversation
                    .say(said, {.max_new_tokens = 24,
                                .eos_token_id = generator.generation_config().eos_token_id})
                    .text +
                "\n";
  }
  EXPECT_EQ(read_text(out), expected);
  EXPECT_THAT(read_text(error), HasSubstr(" cached, "));
}

}  // namespace
}  // namespace tranship
