// Text from an exported model, as it comes, and a second question that does not read the first
// again. usage: generate ARTIFACT QUESTION QUESTION
#include <tranship/error.h>
#include <tranship/generation.h>

#include <cstdio>

int main(int argc, char** argv) try {
  if (argc != 4) return 2;
  tranship::RunOptions run;  // .threads: the CPUs that the process may use
  tranship::Generator generator = tranship::Generator::open(argv[1], run);

  tranship::GenerationConfig config = generator.generation_config();  // the artifact's own
  config.do_sample = false;
  config.max_new_tokens = 24;
  const auto show = [](std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return true;  // false ends the answer
  };

  tranship::Conversation conversation(generator, {{"system", "Be brief."}});
  for (int i = 2; i < argc; ++i) {
    const tranship::GeneratedText answer = conversation.say(argv[i], config, show);
    const tranship::GenerationStats& stats = answer.stats;
    std::fprintf(stderr, "\n%lld tokens read, %lld cached, %.1f new ones a second\n",
                 static_cast<long long>(stats.prompt_tokens - stats.cached_tokens),
                 static_cast<long long>(stats.cached_tokens), stats.decode_tokens_per_second());
    std::puts("");
  }
  return 0;
} catch (const tranship::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
