#include "job/job_files.h"

#include <gtest/gtest.h>

#include "job/job.h"
#include "job/test_job.h"

namespace trainyard::job {
namespace {

TEST(JobFiles, AreReadBackAsTheyWere) {
  const JobFiles files{{"/home/ada/seeds.txt", "1\n\"2\"\n"}, {"/b", ""}};
  EXPECT_EQ(job_files_from(to_json(files)), files);
  EXPECT_EQ(job_files_from(to_json({})), JobFiles{});
}

TEST(JobFiles, ThatAreDamagedAreAnError) {
  for (const char* const text : {"", "{", "[]", "7", R"({"a": 1})", R"({"a": ["b"]})"}) {
    EXPECT_FALSE(job_files_from(text)) << text;
  }
}

TEST(JobFiles, OfAMatrixAreKnownToTheJobThatWasReadWithThem) {
  LoadOptions options = in_job_directory();
  options.files = {{"/job/seeds.txt", "7\n8\n"}};
  const Job job = job_of(
      "groups: [{name: g, matrix: {seed: {file: seeds.txt}}, tasks: [{command: 'echo {seed}'}]}]",
      options);
  EXPECT_EQ(job.plan().tasks.size(), 2U);
  EXPECT_EQ(job.files(), options.files);
}

}  // namespace
}  // namespace trainyard::job
