#include "model/site_wish.h"

#include <gtest/gtest.h>

namespace trainyard::model {
namespace {

constexpr std::string_view kH100 = "NVIDIA H100 80GB HBM3";

TEST(SiteWish, TakesAMachineWhoseWholeNameMatches) {
  const auto takes = [](const char* pattern, std::string_view name) {
    return SiteWish{.machine = pattern}.takes_machine(name);
  };
  EXPECT_TRUE(takes("lab2", "lab2"));
  EXPECT_TRUE(takes("LAB2", "lab2")) << "case does not matter";
  EXPECT_FALSE(takes("lab", "lab2")) << "the whole name";
  EXPECT_FALSE(takes("ab2", "lab2"));
  EXPECT_TRUE(takes("lab*", "lab2"));
  EXPECT_TRUE(takes("lab*", "lab"));
  EXPECT_TRUE(takes("lab2", "")) << "nobody knows how it is called";
  EXPECT_TRUE(takes("l?b2", "lab2"));
  EXPECT_FALSE(takes("lab2?", "lab2")) << "a '?' is one sign";
  EXPECT_TRUE(takes("*a*2", "lab2-a12")) << "the last '*' takes as much as it must";
  EXPECT_FALSE(takes("*a*3", "lab2-a12"));
  EXPECT_TRUE(takes("", "lab2")) << "nothing is said";
}

TEST(SiteWish, TakesAGpuInWhoseNameThePatternIsSomewhere) {
  const auto takes = [](const char* pattern) { return SiteWish{.gpu = pattern}.takes_gpu(kH100); };
  EXPECT_TRUE(takes("H100"));
  EXPECT_TRUE(takes("h100"));
  EXPECT_TRUE(takes("H?00*HBM3"));
  EXPECT_FALSE(takes("H200"));
  EXPECT_TRUE(SiteWish{.gpu = "H200"}.takes_gpu(""));
  EXPECT_FALSE(takes("H100?80GB HBM3?"));
}

TEST(SiteWish, IsMatchedInATimeThatDoesNotExplode) {
  std::string pattern;
  for (int i = 0; i < 60; ++i) pattern += "*a";
  const std::string text(4'000, 'a');
  EXPECT_FALSE((SiteWish{.machine = pattern + "b"}.takes_machine(text)));
  EXPECT_TRUE((SiteWish{.machine = pattern}.takes_machine(text)));
}

TEST(SiteWish, IsReadAsItIsWritten) {
  for (const char* const text : {"machine=lab*", "gpu=H100", "machine=lab*,gpu=H100 80GB"}) {
    const Result<SiteWish> wish = parse_site_wish(text);
    ASSERT_TRUE(wish) << text;
    EXPECT_EQ(to_text(*wish), text);
  }
  EXPECT_EQ(parse_site_wish("gpu=A100,machine=b?").value(),
            (SiteWish{.machine = "b?", .gpu = "A100"}));
  EXPECT_EQ(to_text(SiteWish{}), "");
}

TEST(SiteWish, SaysWhatWouldBeRight) {
  const auto why = [](std::string_view text) {
    const Result<SiteWish> wish = parse_site_wish(text);
    return wish ? std::string() : wish.error().message;
  };
  EXPECT_EQ(why("machin=lab*"), "unknown key 'machin' (did you mean 'machine'?)");
  EXPECT_EQ(why("rack=7"), "unknown key 'rack'; use 'machine' or 'gpu'");
  const std::string of_what =
      " must be the name of a machine or a GPU, as in 'machine=lab*' or "
      "'gpu=H100'";
  EXPECT_EQ(why("lab2"), "'lab2'" + of_what);
  EXPECT_EQ(why(""), "''" + of_what);
  EXPECT_EQ(why("gpu=H100,A100"), "'A100'" + of_what);
  const std::string of_what_pattern =
      " must be a name or a pattern, as in 'machine=lab*' or 'gpu=H100'";
  EXPECT_EQ(why("machine"), "'machine'" + of_what_pattern);
  EXPECT_EQ(why("gpu"), "'gpu'" + of_what_pattern);
  EXPECT_EQ(why("machine="), "'machine'" + of_what_pattern);
  EXPECT_EQ(why("gpu=a,gpu=b"), "duplicate key 'gpu'");
  EXPECT_EQ(why("gpu=" + std::string(257, 'x')), "'gpu' has a pattern of more than 256 bytes");
}

TEST(SiteWish, SaysOfAMachineThatWillDo) {
  EXPECT_EQ(predicate_text({.machine = "lab*"}), "is called 'lab*'");
  EXPECT_EQ(predicate_text({.gpu = "H100"}), "has a GPU called 'H100'");
  EXPECT_EQ(predicate_text({.machine = "lab*", .gpu = "H100"}),
            "is called 'lab*' and has a GPU called 'H100'");
}

}  // namespace
}  // namespace trainyard::model
