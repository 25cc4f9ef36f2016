// The frameworks that a command's Python would import, read from the files next to it.
#include "hardware/python_packages.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sys/test_directory.h"

namespace trainyard::hardware {
namespace {

namespace dirs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class PythonPackages : public ::testing::Test {
 protected:
  /// A file below the directory of the test, with the directories above it.
  std::string write(const std::string& name, std::string_view text, bool runs = false) {
    const dirs::path path = dirs::path(directory_.path()) / name;
    dirs::create_directories(path.parent_path());
    std::ofstream(path) << text;
    if (runs) dirs::permissions(path, dirs::perms::owner_all);
    return path.string();
  }
  [[nodiscard]] std::string at(const std::string& name) const {
    return (dirs::path(directory_.path()) / name).string();
  }
  [[nodiscard]] PythonSurroundings around() const {
    return {.path = at("bin") + ":" + at("venv/bin"),
            .user_packages = true,
            .working_directory = directory_.path()};
  }

 private:
  sys::TemporaryDirectory directory_;
};

TEST_F(PythonPackages, AreThoseOfTheProgramOnThePath) {
  write("bin/python3",
        "\x7f"
        "ELF",
        true);
  EXPECT_EQ(find_python("python3", around()), at("bin/python3"));
  EXPECT_EQ(find_python("bin/python3", around()), at("bin/python3"));
  EXPECT_EQ(find_python("python9", around()), std::nullopt) << "there is none";
  write("bin/uv",
        "\x7f"
        "ELF",
        true);
  EXPECT_EQ(find_python("uv", around()), std::nullopt) << "it is no Python";
  write("bin/python4", "");
  EXPECT_EQ(find_python("python4", around()), std::nullopt) << "it cannot be run";
}

TEST_F(PythonPackages, AreThoseOfTheShebang) {
  write("venv/bin/python3",
        "\x7f"
        "ELF",
        true);
  write("fit.py", "#!/usr/bin/env -S A=b python3 -u\nimport torch\n", true);
  EXPECT_EQ(find_python("./fit.py", around()), at("venv/bin/python3"));
  write("bin/accelerate", "#!" + at("venv/bin/python3") + "\n", true);
  EXPECT_EQ(find_python("accelerate", around()), at("venv/bin/python3"));
  write("bin/python", "#!/bin/sh\nexec something\n", true);
  EXPECT_EQ(find_python("python", around()), std::nullopt) << "what a shell makes of it is unknown";
  write("round", "#!" + at("round") + "\n", true);
  EXPECT_EQ(find_python("./round", around()), std::nullopt);
}

TEST_F(PythonPackages, LieInTheVirtualEnvironmentThatItsPathIsIn) {
  const std::string python = write("venv/bin/python3", "", true);
  write("venv/pyvenv.cfg", "home = /usr/bin\ninclude-system-site-packages = false\n");
  write("venv/lib/python3.11/site-packages/torch/version.py", "__version__ = '2.10.0+cu128'\n");
  const std::vector<std::string> directories = package_directories(python, around());
  EXPECT_THAT(directories, ElementsAre(at("venv/lib/python3.11/site-packages")));
  EXPECT_EQ(release_of_torch(directories), "2.10.0+cu128");
  EXPECT_EQ(release_of_jaxlib(directories), std::nullopt);
}

TEST_F(PythonPackages, LieInTheSystemAsWellWhereTheEnvironmentSaysSo) {
  const std::string python = write("venv/bin/python3", "", true);
  write("base/bin/python3.11", "", true);
  dirs::create_symlink(at("base/bin/python3.11"), at("base/bin/python3"));
  write("venv/pyvenv.cfg", "home = " + at("base/bin") + "\ninclude-system-site-packages = true\n");
  write("venv/lib/python3.11/site-packages/one.py", "");
  write("base/lib/python3.11/site-packages/torch/version.py", "__version__ = \"2.4.1\"\n");
  write("base/lib/python3.12/site-packages/torch/version.py", "__version__ = \"2.10.0\"\n");
  const std::vector<std::string> directories = package_directories(python, around());
  EXPECT_THAT(directories, ElementsAre(at("venv/lib/python3.11/site-packages"),
                                       at("base/lib/python3.11/site-packages")));
  EXPECT_EQ(release_of_torch(directories), "2.4.1");
}

TEST_F(PythonPackages, LieInTheUsersOwnDirectoryBeforeTheSystems) {
  write("base/bin/python3.11", "", true);
  write("base/lib/python3.11/site-packages/torch/version.py", "__version__ = \"2.4.1\"\n");
  write("home/.local/lib/python3.11/site-packages/torch/version.py", "__version__ = '2.11.0'\n");
  PythonSurroundings with_home = around();
  with_home.home = at("home");
  const auto release = [&] {
    return release_of_torch(package_directories(at("base/bin/python3.11"), with_home));
  };
  EXPECT_EQ(release(), "2.11.0");
  with_home.user_packages = false;
  EXPECT_EQ(release(), "2.4.1");
  with_home.python_path = "own";
  write("own/torch/version.py", "__version__ = '2.12.0'\n");
  EXPECT_EQ(release(), "2.12.0");
}

TEST_F(PythonPackages, HaveNoReleaseWhereTheFirstSaysNone) {
  write("one/torch/version.py", "from somewhere import __version__\n");
  write("two/torch/version.py", "__version__ = '2.10.0'\n");
  EXPECT_EQ(release_of_torch({at("one"), at("two")}), std::nullopt)
      << "the second is not what is imported";
  EXPECT_EQ(release_of_torch({at("none"), at("two")}), "2.10.0");
}

TEST_F(PythonPackages, OfJaxHaveTheirReleaseInTheNameOfTheirMetadata) {
  write("one/jaxlib/__init__.py", "");
  write("one/jaxlib-0.5.3.dist-info/METADATA", "");
  EXPECT_EQ(release_of_jaxlib({at("none"), at("one")}), "0.5.3");
  write("two/jaxlib/__init__.py", "");
  EXPECT_EQ(release_of_jaxlib({at("two"), at("one")}), std::nullopt);
}

TEST(WrittenRelease, IsOnePlainText) {
  EXPECT_EQ(written_release("from x import y\n__all__ = ['__version__']\n"
                            "__version__ = '2.10.0+cu128'  # hand-made\ncuda = '12.8'\n"),
            "2.10.0+cu128");
  EXPECT_EQ(written_release("__version__: str = '2.10.0'\n"), std::nullopt);
  EXPECT_EQ(written_release("__version__ = get()\n"), std::nullopt);
  EXPECT_EQ(written_release("__version__ = '2.10.0\n"), std::nullopt);
  EXPECT_EQ(written_release("__version__ = ''\n"), std::nullopt);
  EXPECT_EQ(written_release("__version__ = '$(id)'\n"), std::nullopt);
  EXPECT_EQ(written_release("__version__"), std::nullopt);
  EXPECT_EQ(written_release(""), std::nullopt);
}

TEST(WrittenRelease, IsComparedByItsNumbers) {
  EXPECT_TRUE(is_at_least("2.10.0+cu128", 2, 10));
  EXPECT_TRUE(is_at_least("2.10", 2, 10));
  EXPECT_TRUE(is_at_least("2.11.0a0+git1234", 2, 10));
  EXPECT_TRUE(is_at_least("10.0.1", 2, 10));
  EXPECT_FALSE(is_at_least("2.9.1", 2, 10));
  EXPECT_FALSE(is_at_least("2.10.0a0+git1234", 2, 10)) << "it may have been made too early";
  EXPECT_FALSE(is_at_least("2.10.0rc1", 2, 10));
  EXPECT_FALSE(is_at_least("2.10.dev1", 2, 10));
  EXPECT_FALSE(is_at_least("2.10-1a", 2, 10));
  EXPECT_TRUE(is_at_least("2.10.1.dev20261101", 2, 10)) << "it came after 2.10.0";
  EXPECT_TRUE(is_at_least("0.4.36.dev20241125", 0, 4));
  EXPECT_FALSE(is_at_least("two", 2, 10));
  EXPECT_FALSE(is_at_least("", 0, 0));
  EXPECT_FALSE(is_at_least("99999999999.0", 2, 10));
}

}  // namespace
}  // namespace trainyard::hardware
