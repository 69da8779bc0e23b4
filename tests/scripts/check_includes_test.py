"""scripts/check-includes finds what breaks the layers, and nothing else."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).parents[2] / "scripts" / "check-includes"


class CheckIncludes(unittest.TestCase):
    def check(self, **files):
        """Runs the script over a tree of {path with / as __ : text}; returns (failed, output)."""
        with tempfile.TemporaryDirectory() as root:
            for name, text in files.items():
                path = pathlib.Path(root, *name.replace("_DOT_", ".").split("__"))
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            done = subprocess.run([sys.executable, SCRIPT, root], capture_output=True, text=True)
            return done.returncode != 0, done.stdout + done.stderr

    def test_an_include_along_an_arrow_is_fine(self):
        failed, output = self.check(
            runtime__base__a_DOT_hpp="#include <vector>\n",
            kernels__b_DOT_cpp='#include "runtime/base/a.hpp"\n#include <sys/mman.h>\n')
        self.assertFalse(failed, output)

    def test_an_include_against_an_arrow_is_named(self):
        failed, output = self.check(
            kernels__a_DOT_hpp="", runtime__memory__b_DOT_cpp='#include "kernels/a.hpp"\n')
        self.assertTrue(failed)
        self.assertIn("runtime/memory/b.cpp:1: kernels/a.hpp", output)

    def test_a_third_party_out_of_its_place_is_named(self):
        failed, output = self.check(kernels__a_DOT_cpp="\n#include <ucp/api/ucp.h>\n")
        self.assertTrue(failed)
        self.assertIn("kernels/a.cpp:2: ucp/api/ucp.h", output)

    def test_the_middleman_is_for_benchmarks_alone(self):
        failed, _ = self.check(actors__a_DOT_cpp="#include <caf/io/all.hpp>\n")
        self.assertTrue(failed)
        failed, output = self.check(bench__a_DOT_cpp="#include <caf/io/all.hpp>\n")
        self.assertFalse(failed, output)

    def test_an_installed_header_shows_nothing_that_is_not_installed(self):
        for include in ('"runtime/transport/internal/a.hpp"', "<capnp/message.h>"):
            failed, output = self.check(
                runtime__transport__internal__a_DOT_hpp="",
                runtime__transport__b_DOT_hpp=f"#include {include}\n")
            self.assertTrue(failed, output)

    def test_an_internal_header_stays_in_its_folder(self):
        failed, output = self.check(
            runtime__transport__internal__a_DOT_hpp="",
            runtime__remoting__b_DOT_cpp='#include "runtime/transport/internal/a.hpp"\n')
        self.assertTrue(failed)
        self.assertIn("internal to runtime/transport", output)

    def test_a_library_or_a_folder_that_nobody_decided_on_is_named(self):
        failed, _ = self.check(actors__a_DOT_cpp="#include <boost/any.hpp>\n")
        self.assertTrue(failed)
        failed, _ = self.check(runtime__new__a_DOT_hpp="",
                               runtime__new__a_DOT_cpp='#include "runtime/new/a.hpp"\n')
        self.assertTrue(failed)

    def test_a_tree_without_sources_is_an_error(self):
        failed, _ = self.check(README="")
        self.assertTrue(failed)


if __name__ == "__main__":
    unittest.main()
