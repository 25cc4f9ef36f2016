#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include "report/html_page.h"

namespace trainyard::report {
namespace {

/// A file of this folder, whole.
std::string source(const std::string& name) {
  std::ifstream file(TRAINYARD_REPORT_FOLDER "/" + name);
  EXPECT_TRUE(file.is_open()) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(HtmlAssets, AreTheFilesByteForByte) {
  EXPECT_EQ(kPageStyle, "\n" + source("page.css"));
  EXPECT_EQ(kPageScript, "\n" + source("page.js"));
  EXPECT_EQ(kPlanStyle, "\n" + source("plan.css"));
}

TEST(HtmlAssets, DoNotEndTheElementThatTheyAreIn) {
  EXPECT_FALSE(kPageStyle.contains("</")) << "page.css";
  EXPECT_FALSE(kPageScript.contains("</")) << "page.js";
  EXPECT_FALSE(kPlanStyle.contains("</")) << "plan.css";
}

}  // namespace
}  // namespace trainyard::report
