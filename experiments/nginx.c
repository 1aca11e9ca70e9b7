// SPDX-License-Identifier: MIT
#include "experiments/nginx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "experiments/hosts/program_path.h"

const char *nginx_program(void)
{
    return program_exists("nginx") ? "nginx" : "/usr/sbin/nginx";
}

// Relative paths are below the folder it is started with (-p). Connections are kept for as long as
// the client likes; its temporary files would be made below /var otherwise.
static char *configuration(const struct nginx_plan *plan)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    if (!out)
        return NULL;
    fprintf(out,
            "daemon off;\n"
            "worker_processes %llu;\n"
            "%s"
            "pid nginx.pid;\n"
            "error_log stderr warn;\n"
            "events {\n"
            "    worker_connections 8192;\n"
            "}\n"
            "http {\n"
            "    access_log off;\n"
            "    keepalive_requests 1000000000;\n"
            "    keepalive_timeout 1d;\n"
            "    client_body_temp_path body;\n"
            "    proxy_temp_path proxy;\n"
            "    fastcgi_temp_path fastcgi;\n"
            "    uwsgi_temp_path uwsgi;\n"
            "    scgi_temp_path scgi;\n"
            "    default_type text/plain;\n"
            "    server {\n"
            "        listen %s:%u;\n"
            "        root .;\n",
            (unsigned long long)plan->workers,
            plan->as_root ? "user root;\n" : "", // else its workers may not read it
            plan->address, plan->port);
    for (uint64_t i = 0; i < plan->rules; i++)
        fprintf(out, "        rewrite ^/moved-%llu/(.*)$ /page last;\n", (unsigned long long)i);
    fputs("        location / {\n            try_files /page =404;\n        }\n    }\n}\n", out);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

int nginx_configure(const struct run_folder *folder, const char *name,
                    const struct nginx_plan *plan, struct error *err)
{
    char path[RUN_PATH_BYTES + 128], file[120];
    if (mkdir(run_folder_path(folder, name, path), 0755) < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot make the folder %s", path);
    char *text = configuration(plan), *page = malloc(plan->page_bytes);
    int result = text && page ? 0 : error_set(err, ERROR_FAILED, "out of memory for nginx's page");
    if (result == 0) {
        memset(page, 'x', plan->page_bytes);
        snprintf(file, sizeof file, "%s/page", name);
        result = run_folder_write(folder, file, page, plan->page_bytes, err);
    }
    if (result == 0) {
        snprintf(file, sizeof file, "%s/nginx.conf", name);
        result = run_folder_write(folder, file, text, strlen(text), err);
    }
    free(text);
    free(page);
    return result;
}
