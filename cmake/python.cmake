# SPDX-License-Identifier: Apache-2.0
# The interpreter itself, and not a script that chooses one, as of pyenv: each test would pay for it.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
execute_process(COMMAND ${Python3_EXECUTABLE} -c "import sys; print(sys.executable)"
                OUTPUT_VARIABLE python3_itself OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
set(Python3_EXECUTABLE ${python3_itself})
