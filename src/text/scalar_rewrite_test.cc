// Other values in a text that a person wrote, and nothing else.
#include "text/scalar_rewrite.h"

#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::text {
namespace {

using ::testing::HasSubstr;

/// The value of a key of the first group, as an edit of it.
ScalarEdit edit_of(const std::string& text, std::string_view key, std::string to) {
  const YamlDocument document(text, "");
  const YamlNode* const groups = document.root()->find("groups");
  const YamlNode* const value = groups->items.at(0)->find(key);
  return {.place = value->place, .key = std::string(key), .from = value->text, .to = std::move(to)};
}

/// The new text, or the reason why there is none.
std::string rewritten(const std::string& text, const std::vector<ScalarEdit>& edits) {
  Result<std::string> result = rewrite_scalars(text, "job.yaml", edits);
  return result ? *result : result.error().message;
}

constexpr std::string_view kRefused =
    "job.yaml:2:11: this is not a plain value in one line; edit it by hand";

TEST(ScalarRewrite, KeepsCommentsOrderAndBlanks) {
  const std::string text =
      "# mine\n"
      "groups:   # all\n"
      "  - name: g\r\n"
      "    memory:   4GB   # too much?\n"
      "\n"
      "    gpu-memory: \"8 GB\"\n"
      "    note: 'it''s'\n"
      "    tasks: [{command: x}]   \n";
  EXPECT_EQ(rewritten(text, {edit_of(text, "memory", "1.2GB"),
                             edit_of(text, "gpu-memory", "at least 6GB")}),
            "# mine\n"
            "groups:   # all\n"
            "  - name: g\r\n"
            "    memory:   1.2GB   # too much?\n"
            "\n"
            "    gpu-memory: \"at least 6GB\"\n"
            "    note: 'it''s'\n"
            "    tasks: [{command: x}]   \n");
}

TEST(ScalarRewrite, ChangesValuesInFlowMappingsAndAfterOtherLetters) {
  const std::string text = "groups: [{name: \"zähler\", memory: 4GB, gpu-memory: auto}]";
  EXPECT_EQ(rewritten(text, {edit_of(text, "memory", "at least 1GB"),
                             edit_of(text, "gpu-memory", "3GB")}),
            "groups: [{name: \"zähler\", memory: at least 1GB, gpu-memory: 3GB}]");
}

TEST(ScalarRewrite, RefusesWhatIsNotWrittenLetterByLetter) {
  for (const char* const value :
       {"&m 4GB", "!!str 4GB", "|\n    4GB", ">-\n    4GB", "\"4\\x47B\"", "4GB\n    more"}) {
    const std::string text = std::string("groups:\n- memory: ") + value + "\n";
    EXPECT_EQ(rewritten(text, {edit_of(text, "memory", "1GB")}), kRefused) << value;
  }
  const std::string text = "groups:\n- memory: 4GB\n";
  ScalarEdit elsewhere = edit_of(text, "memory", "1GB");
  elsewhere.place.line = 9;
  EXPECT_THAT(rewritten(text, {elsewhere}), HasSubstr("job.yaml:9:11: "));
  ScalarEdit another = edit_of(text, "memory", "1GB");
  another.from = "5GB";
  EXPECT_EQ(rewritten(text, {another}), kRefused);
}

TEST(ScalarRewrite, RefusesAValueThatIsMeantElsewhereToo) {
  const std::string text =
      "groups:\n"
      "- &base\n"
      "  memory: 4GB\n"
      "  size: 1\n"
      "other: *base\n";
  EXPECT_EQ(rewritten(text, {edit_of(text, "memory", "1GB")}),
            "job.yaml:3:11: another value here would also change other keys; edit it by hand");
  const std::string alone = "groups:\n- memory: 4GB\n  size: 1\n";
  ScalarEdit odd = edit_of(alone, "memory", "1GB");
  odd.key = "size";
  EXPECT_EQ(rewritten(alone, {odd}),
            "job.yaml:2:11: another value here would also change other keys; edit it by hand");
}

TEST(ScalarRewrite, NamesTheEditThatCannotBe) {
  const std::string text = "groups:\n- memory: 4GB\n  gpu-memory: |\n    8GB\n";
  EXPECT_EQ(rewritten(text, {edit_of(text, "memory", "1GB"), edit_of(text, "gpu-memory", "1GB")}),
            "job.yaml:3:15: this is not a plain value in one line; edit it by hand");
}

TEST(ScalarRewrite, ShowsTheLinesThatAreDifferent) {
  EXPECT_EQ(line_diff("a\nb\nc", "a\nB\nC", "job.yaml"),
            "--- job.yaml\n+++ job.yaml\n@@ -2 +2 @@\n-b\n+B\n@@ -3 +3 @@\n-c\n+C\n");
  EXPECT_EQ(line_diff("a\nb\n", "a\nb\n", "job.yaml"), "");
}

}  // namespace
}  // namespace trainyard::text
