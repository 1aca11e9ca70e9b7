// SPDX-License-Identifier: MIT
//
// NGINX, as a server or as a neighbour, with a configuration and a folder of the run's own. It
// answers every request with the same page. It uses nothing of the machine's installation but the
// program, and writes nowhere else.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "experiments/hosts/host.h"
#include "experiments/common/program_path.h"
#include "experiments/servers/server_kind.h"

static bool nginx_speaks(const char *protocol)
{
    return strcmp(protocol, "http") == 0 || strcmp(protocol, "http2") == 0;
}

// On PATH, or in /usr/sbin, which only root has on PATH.
static const char *nginx_program(void)
{
    return program_exists("nginx") ? "nginx" : "/usr/sbin/nginx";
}

static int nginx_check_program(const struct experiment_server *plan, struct error *err)
{
    (void)plan;
    return program_exists(nginx_program()) ? 0 : program_needed("nginx", err);
}

// Relative paths are below the folder it is started with (-p). Connections are kept for as long as
// the client likes; its temporary files would be made below /var otherwise.
static char *nginx_configuration(const struct experiment_server *plan, const struct host *host)
{
    const bool http2 = plan->protocol && strcmp(plan->protocol, "http2") == 0;
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
            "    http2_max_concurrent_streams 65536;\n"
            "    client_body_temp_path body;\n"
            "    proxy_temp_path proxy;\n"
            "    fastcgi_temp_path fastcgi;\n"
            "    uwsgi_temp_path uwsgi;\n"
            "    scgi_temp_path scgi;\n"
            "    default_type text/plain;\n"
            "    server {\n"
            "        listen %s:%u%s;\n"
            "        root .;\n",
            (unsigned long long)plan->threads,
            host->is_root ? "user root;\n" : "", // else its workers could not read the run's folder
            host->address, plan->port, http2 ? " http2" : "");
    for (uint64_t i = 0; i < plan->rules; i++)
        fprintf(out, "        rewrite ^/moved-%llu/(.*)$ /page last;\n", (unsigned long long)i);
    fputs("        location / {\n            try_files /page =404;\n        }\n    }\n}\n", out);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

static int write_files(const struct experiment_server *plan, const struct run_folder *folder,
                       const char *name, const char *text, struct error *err)
{
    char file[120], *page = malloc(plan->page_bytes);
    int result = page ? 0 : error_set(err, ERROR_FAILED, "out of memory for nginx's page");
    if (result == 0) {
        memset(page, 'x', plan->page_bytes);
        snprintf(file, sizeof file, "%s/page", name);
        result = run_folder_write(folder, file, page, plan->page_bytes, err);
    }
    if (result == 0) {
        snprintf(file, sizeof file, "%s/nginx.conf", name);
        result = run_folder_write(folder, file, text, strlen(text), err);
    }
    free(page);
    return result;
}

static int nginx_configure(const struct experiment_server *plan, const struct host *host,
                           const struct run_folder *folder, const char *name, bool to_write,
                           struct error *err)
{
    char path[RUN_PATH_BYTES + 128];
    if (!to_write)
        return 1;
    if (mkdir(run_folder_path(folder, name, path), 0755) < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot make the folder %s", path);
    char *text = nginx_configuration(plan, host);
    int result = text ? write_files(plan, folder, name, text, err)
                      : error_set(err, ERROR_FAILED, "out of memory for nginx's configuration");
    free(text);
    return result < 0 ? result : 1;
}

static int nginx_make_command(struct command_line *line, const struct experiment_server *plan,
                              const struct host *host, const char *folder, struct error *err)
{
    const char *const words[] = {nginx_program(), "-e", "stderr",     "-p",
                                 folder,          "-c", "nginx.conf", NULL};
    (void)plan;
    (void)host;
    command_line_add_list(line, words);
    return command_line_result(line, err);
}

const struct server_kind server_nginx = {
    .name = "nginx",
    .help = "NGINX, which serves one page over HTTP/1.1 or HTTP/2, as the workload says",
    .keys = (const char *const[]){"threads", "memory", "page", "rules", NULL},
    .instead = "the run writes its configuration",
    .protocol = "http",
    .port = 80,
    .has_children = true,
    .one_protocol = true,
    .speaks = nginx_speaks,
    .check = server_needs_no_check,
    .find_port = server_has_its_port,
    .check_program = nginx_check_program,
    .configure = nginx_configure,
    .make_command = nginx_make_command,
};
