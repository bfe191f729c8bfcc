"""Scripts of R and Octave that print the contents of a file as JSON.

The last axis of an array of R or Octave is the slowest, so the printed values are in C order.
"""

R_NCDF4 = r"""
suppressMessages({library(ncdf4); library(jsonlite)})
said <- commandArgs(TRUE)
nc <- nc_open(said[1])
attributes_of <- function(name) { found <- ncatt_get(nc, name); if (length(found)) found else NULL }
coordinates <- names(nc$dim)[sapply(nc$dim, function(d) d$dimvarid$id != -1)]
names <- if (length(said) > 1) said[-1] else c(names(nc$var), coordinates)
variables <- list()
for (name in names) {
    dimensions <- if (name %in% coordinates) name else rev(sapply(nc$var[[name]]$dim, function(d) d$name))
    shown <- ncvar_get(nc, name)
    variables[[name]] <- list(decoded = as.vector(shown), attributes = attributes_of(name), dimensions = as.character(dimensions))
    if (!is.character(shown)) variables[[name]]$values <- as.vector(ncvar_get(nc, name, raw_datavals = TRUE))
}
unboxed <- function(found) lapply(found, function(item) if (length(item) == 1) unbox(item) else item)
for (name in names) variables[[name]]$attributes <- unboxed(variables[[name]]$attributes)
cat("\n", toJSON(list(variables = variables, attributes = unboxed(ncatt_get(nc, 0))), digits = NA, na = "null"), sep = "")
"""

R_RHDF5 = r"""
suppressMessages({library(rhdf5); library(jsonlite)})
path <- commandArgs(TRUE)[1]
unboxed <- function(found) lapply(found, function(item) if (length(item) == 1) unbox(item) else item)
own <- c("CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST", "_NCProperties", "_Netcdf4Dimid", "_Netcdf4Coordinates")
attributes_of <- function(name) { found <- suppressWarnings(h5readAttributes(path, name)); found[setdiff(names(found), own)] }
variables <- list()
found <- h5ls(path)
for (n in which(found$otype == "H5I_DATASET")) {
    name <- sub("^/+", "", paste(found$group[n], found$name[n], sep = "/"))
    attributes <- suppressWarnings(h5readAttributes(path, name))
    if (any(grepl("^This is a netCDF dimension but not", attributes[["NAME"]]))) next
    values <- tryCatch(suppressWarnings(h5read(path, name, bit64conversion = "double")), error = function(e) NULL)
    if (is.null(values)) next
    if (is.factor(values)) values <- as.logical(as.character(values))
    if (is.raw(values)) values <- as.integer(values)
    if (is.list(values)) next
    variables[[name]] <- list(values = as.vector(values), attributes = unboxed(attributes_of(name)))
}
cat("\n", toJSON(list(variables = variables, attributes = unboxed(attributes_of("/"))), digits = NA, na = "null"), sep = "")
"""

# Functions of the scripts of Octave. Text is a matrix of letters with one element in each column.
OCTAVE_COMMON = r"""
1;
function out = told_values(values)
    if ischar(values) && rows(values) > 0
        values = cellfun(@(text) strtok([text, char(0)], char(0)), cellstr(values(:, :)'), "UniformOutput", false);
    end
    if iscell(values), out = values(:)'; else out = {values(:)'}; out = out{1}; end
    if isnumeric(out) && numel(out) == 1, out = {out}; end
end
function values = read(path, name)
    if any(name == "/"), name = ["/", name]; end
    values = ncread(path, name);
end
function out = told_attributes(found)
    out = struct();
    for item = found(:)', out.(strrep(item.Name, "_Fill", "X_Fill")) = item.Value; end
end
"""

# `ncinfo` lists the variables, and `ncread` reads them.
OCTAVE_NETCDF = OCTAVE_COMMON + r"""
pkg load netcdf
function out = told_group(path, info, prefix, out)
    if isfield(info, "Variables")
        for variable = info.Variables
            name = [prefix, variable.Name];
            values = read(path, name);
            entry = struct("name", name, "decoded", {told_values(values)}, "attributes", told_attributes(variable.Attributes));
            entry.dimensions = {};
            if ! isempty(variable.Dimensions), entry.dimensions = fliplr({variable.Dimensions.Name}); end
            if ischar(values), entry.dimensions(end) = []; end
            out{end + 1} = entry;
        end
    end
    if isfield(info, "Groups")
        for group = info.Groups(:)', out = told_group(path, group, [prefix, group.Name, "/"], out); end
    end
end
path = argv(){1};
info = ncinfo(path);
printf("\n%s", jsonencode(struct("variables", {told_group(path, info, "", {})}, "attributes", told_attributes(info.Attributes))));
"""

# Reads variables by name, without `ncinfo`: the arguments of the script are the names.
OCTAVE_NCREAD = OCTAVE_COMMON + r"""
pkg load netcdf
said = argv();
out = {};
for n = 2:numel(said)
    try, out{end + 1} = struct("name", said{n}, "decoded", {told_values(read(said{1}, said{n}))}); end
end
printf("\n%s", jsonencode(struct("variables", {out})));
"""

OCTAVE_LOAD = OCTAVE_COMMON + r"""
said = argv();
out = {};
for n = 2:numel(said)
    try
        values = load("-hdf5", said{1}, said{n}).(said{n});
        out{end + 1} = struct("name", said{n}, "values", {told_values(values)});
    end
end
printf("\n%s", jsonencode(struct("variables", {out})));
"""
