"""Ten-line programs that read `.raw`, as people write them in C, Fortran, Octave and ImageJ's macro language."""

C = r"""
#include <stdio.h>
#include <stdint.h>
int main(int count, char **argument) {
    FILE *file = fopen(argument[1], "rb");
    uint16_t values[4096];
    uint64_t sum = 0, position = 0;
    for (size_t n; (n = fread(values, 2, 4096, file)) > 0;)
        for (size_t i = 0; i < n; i++) sum += values[i] * (position++ % 1000 + 1);
    printf("%llu %llu\n", (unsigned long long)position, (unsigned long long)sum);
    return ferror(file);
}
"""

FORTRAN = """
program sums
  use iso_fortran_env
  implicit none
  character(4096) :: name
  real(real32) :: volume(%(nx)d, %(ny)d, %(nz)d), one
  call get_command_argument(1, name)
  open (10, file=trim(name), access='stream', form='unformatted', status='old', action='read')
  read (10) volume
  read (10, pos=1 + 4 * (%(at)d)) one
  print '(es24.16, 1x, es24.16, 1x, es24.16)', sum(real(volume, real64)), volume(2, 3, 4), one
end program
"""

OCTAVE = """
file = fopen('%(path)s', 'r', 'ieee-le');
values = fread(file, [%(nx)d, Inf], 'uint16=>uint16');
printf('%%d %%d %%d %%d\\n', rows(values), columns(values), sum(double(values(:))), values(3, 2));
"""

# A macro of ImageJ, which needs a display for its menus. It opens a file, and prints its dimensions, its voxel and the
# sum of every pixel.
IMAGEJ = """
setBatchMode(true);
open("%(path)s");
getDimensions(width, height, channels, slices, frames);
getVoxelSize(dx, dy, dz, unit);
total = 0;
for (n = 1; n <= nSlices; n++) {
    setSlice(n);
    for (y = 0; y < height; y++) for (x = 0; x < width; x++) total += getPixel(x, y) * n;
}
print("said " + width + " " + height + " " + channels + " " + slices + " " + frames + " " + dx + " " + dy + " " + dz + " " + d2s(total, 0));
"""
