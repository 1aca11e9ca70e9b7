# SPDX-License-Identifier: MIT
"""Real servers with the shim in them, one after the other (test_long_trust_servers.sh).

Each is started without the shim and asked, started with it under a capture and asked the same: the
bytes of the answers must be equal, it must live on, and the shim's bytes of each connection must be
those that the client moved; where they are not, the capture must say so. Then `taillight run` loads
it, and what it joined is printed, or why nothing could be. Servers that are not installed are named.

With --without-shim (tests/experiments/capture/test_long_any_server.sh) only the last: each as anybody runs
it, its calls by the kernel, and of the answered requests 99.9 % must be joined.

usage: server_matrix.py BUILD WORK [--without-shim] [NAME...]
"""
import glob
import hashlib
import json
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

BUILD, WORK = os.path.abspath(sys.argv[1]), sys.argv[2]
WITHOUT_SHIM = "--without-shim" in sys.argv[3:]
ONLY = [word for word in sys.argv[3:] if word != "--without-shim"]
TAILLIGHT = BUILD + "/taillight"
SHIM = BUILD + "/libtaillight-shim.so"
PATIENCE_S = 60
os.environ["PATH"] += ":/usr/sbin:/usr/lib/postgresql/15/bin"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def write(name, text, mode=0o644):
    path = f"{WORK}/{name}"
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, mode)
    return path


# --- what the client asks -------------------------------------------------------------------------


class Client:
    """A connection that counts what it moved."""

    def __init__(self, port, totals):
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
        self.totals, self.key = totals, self.socket.getsockname()[1]
        totals[self.key] = [0, 0]

    def send(self, data):
        self.socket.sendall(data)
        self.totals[self.key][0] += len(data)

    def receive(self):
        data = self.socket.recv(65536)
        self.totals[self.key][1] += len(data)
        return data

    def receive_until(self, is_whole):
        data = b""
        while not is_whole(data):
            more = self.receive()
            if not more:
                break
            data += more
        return data

    def close(self):
        """Ends it, and waits for the server's end: all it gave has then been counted."""
        try:
            self.socket.shutdown(socket.SHUT_WR)
            while self.receive():
                pass
        except OSError:
            pass
        self.socket.close()


def http_body(client, path):
    """One GET; the status and the body, which must come whole."""
    client.send(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    data = client.receive_until(lambda d: b"\r\n\r\n" in d)
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    fields = dict(l.lower().split(b": ", 1) for l in lines[1:] if b": " in l)
    if b"content-length" in fields:
        missing = int(fields[b"content-length"]) - len(body)
        while missing > 0:
            more = client.receive()
            missing -= len(more)
            body += more
    else:  # chunked
        while not body.endswith(b"0\r\n\r\n"):
            body += client.receive()
    return lines[0].split(b" ")[1] + body, fields.get(b"connection") == b"close"


def ask_http(port, totals, between=lambda: None):
    digest = hashlib.sha256()
    for number in range(20):
        client = Client(port, totals)
        for request in range(10):
            body, ends = http_body(client, f"/{(number * 10 + request) % 7}")
            digest.update(body)
            if ends:
                client.close()
                client = Client(port, totals)
        client.close()
        if number == 9:
            between()
    return digest.hexdigest()


def ask_lines(requests, whole):
    """Asks text protocols: pieces of requests, and whether an answer to so many is whole."""

    def ask(port, totals, between=lambda: None):
        digest = hashlib.sha256()
        for number in range(20):
            client = Client(port, totals)
            for count, text in requests(number):
                client.send(text)
                digest.update(client.receive_until(lambda d: whole(d, count)))
            client.close()
        return digest.hexdigest()

    return ask


def memcached_requests(number):
    chance = random.Random(number)
    for _ in range(8):
        value = bytes(chance.choices(b"abcdefgh", k=chance.choice([1, 200, 5000, 20000])))
        yield 1, b"set k%d 0 0 %d\r\n%s\r\n" % (number, len(value), value)
        yield 3, b"get k%d\r\n" % number * 3


def memcached_whole(data, count):
    return data.count(b"\r\nEND\r\n") == count or (count == 1 and data.endswith(b"STORED\r\n"))


def redis_requests(number):
    chance = random.Random(number)
    for _ in range(8):
        value = bytes(chance.choices(b"abcdefgh", k=chance.choice([1, 200, 5000, 20000])))
        yield 1, b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%d\r\n%s\r\n" % (len(value), value)
        yield len(value) + 5, b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"


def redis_whole(data, count):
    return data == b"+OK\r\n" if count == 1 else len(data) > count and data.endswith(b"\r\n")


def psql(port, text, check=True):
    return subprocess.run(
        ["psql", "-h", "127.0.0.1", "-p", str(port), "-U", "nobody", "-d", "postgres", "-Atq"],
        input=text.encode(),
        capture_output=True,
        timeout=PATIENCE_S,
        check=check,
    )


def ask_postgres(port, totals, between=lambda: None):
    """Its own client, which counts nothing. It listens before it answers."""
    until = time.monotonic() + PATIENCE_S
    while psql(port, "select 1;", check=False).returncode and time.monotonic() < until:
        time.sleep(0.1)
    text = "".join(
        f"select {i}, md5('{i}'), repeat('x', {i * 97 % 5000}), g from generate_series(1, {i % 20}) g;\n"
        for i in range(200)
    )
    digest = hashlib.sha256()
    for _ in range(5):
        digest.update(psql(port, text).stdout)
    totals.clear()
    return digest.hexdigest()


# --- the servers ----------------------------------------------------------------------------------

PAGES = {str(i): chr(97 + i) * (1 + 9973 * i) for i in range(7)}

NODE = """
const http = require('http'), cluster = require('cluster'), workers = require('worker_threads');
const page = u => { const i = +u.slice(1) || 0; return String.fromCharCode(97 + i).repeat(1 + 9973 * i); };
const serve = answer => http.createServer((q, r) => answer(q.url, b => r.end(b)));
const [how, port, address] = process.argv.slice(2);
if (how === 'cluster' && cluster.isPrimary) {
  for (let i = 0; i < 3; i++) cluster.fork();
} else if (how === 'workers' && workers.isMainThread) {
  const pool = [0, 1, 2].map(() => new workers.Worker(__filename, {argv: process.argv.slice(2)}));
  const waiting = new Map(); let n = 0;
  pool.forEach(w => w.on('message', ([id, b]) => { waiting.get(id)(b); waiting.delete(id); }));
  serve((u, done) => { waiting.set(++n, done); pool[n % 3].postMessage([n, u]); }).listen(+port, address);
} else if (how === 'workers') {
  workers.parentPort.on('message', ([id, u]) => workers.parentPort.postMessage([id, page(u)]));
} else {
  serve((u, done) => done(page(u))).listen(+port, address);
}
"""

JAVA = """
import com.sun.net.httpserver.*;
import java.net.*;
import java.util.concurrent.*;
public class Server {
  public static void main(String[] a) throws Exception {
    HttpServer s = HttpServer.create(new InetSocketAddress(a[1], Integer.parseInt(a[0])), 64);
    s.setExecutor(Executors.newFixedThreadPool(8));
    s.createContext("/", x -> {
      String p = x.getRequestURI().getPath().substring(1);
      int i = p.length() == 1 ? p.charAt(0) - '0' : 0;
      byte[] b = new byte[1 + 9973 * i];
      java.util.Arrays.fill(b, (byte) (97 + i));
      x.sendResponseHeaders(200, b.length);
      x.getResponseBody().write(b);
      x.close();
    });
    s.start();
  }
}
"""

GO = """
package main
import ("net/http"; "os"; "strings")
func main() {
  http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
    i := 0
    if len(r.URL.Path) == 2 { i = int(r.URL.Path[1] - '0') }
    w.Write([]byte(strings.Repeat(string(rune(97+i)), 1+9973*i)))
  })
  panic(http.ListenAndServe(os.Args[2]+":"+os.Args[1], nil))
}
"""

PYTHON_APP = """
def app(environ, start):
    path = environ['PATH_INFO'][1:]
    i = int(path) if len(path) == 1 and path.isdigit() else 0
    body = chr(97 + i).encode() * (1 + 9973 * i)
    start('200 OK', [('Content-Length', str(len(body)))])
    return [body]
"""

C_SERVER = r"""
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>
static void serve(int fd)
{
    static char in[65536], out[70000];
    size_t used = 0;
    for (ssize_t n; (n = read(fd, in + used, sizeof in - 1 - used)) > 0;) {
        char *end;
        in[used += (size_t)n] = 0;
        while ((end = strstr(in, "\r\n\r\n"))) {
            int i = in[5] >= '0' && in[5] <= '6' && in[6] == ' ' ? in[5] - '0' : 0, length = 1 + 9973 * i;
            int head = sprintf(out, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", length);
            memset(out + head, 'a' + i, (size_t)length);
            for (ssize_t at = 0, m; at < head + length; at += m)
                if ((m = write(fd, out + at, (size_t)(head + length - at))) <= 0)
                    return;
            used -= (size_t)(end + 4 - in);
            memmove(in, end + 4, used + 1);
        }
    }
}
int main(int argc, char **argv)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(argv[1]))};
    int one = 1, s = socket(AF_INET, SOCK_STREAM, 0);
    (void)argc;
    signal(SIGCHLD, SIG_IGN);
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(s, (void *)&a, sizeof a) || listen(s, 64))
        return 1;
    for (int fd; (fd = accept(s, 0, 0)) >= 0; close(fd))
        if (fork() == 0) {
            close(s);
            serve(fd);
            _exit(0);
        }
}
"""


URING_SERVER = r"""
#include <arpa/inet.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
struct connection {
    int fd, sends, used;
    char in[65536], out[70000];
};
static struct io_uring ring;
static struct io_uring_sqe *next(struct connection *connection)
{
    struct io_uring_sqe *entry = io_uring_get_sqe(&ring);
    io_uring_sqe_set_data(entry, connection);
    return entry;
}
static void go_on(struct connection *c)
{
    char *end = (c->in[c->used] = 0, strstr(c->in, "\r\n\r\n"));
    struct io_uring_sqe *entry = next(c);
    if (!end) {
        io_uring_prep_recv(entry, c->fd, c->in + c->used, sizeof c->in - 1 - (size_t)c->used, 0);
    } else {
        int i = c->in[5] >= '0' && c->in[5] <= '6' && c->in[6] == ' ' ? c->in[5] - '0' : 0, length = 1 + 9973 * i;
        int head = sprintf(c->out, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", length);
        memset(c->out + head, 'a' + i, (size_t)length);
        c->used -= (int)(end + 4 - c->in);
        memmove(c->in, end + 4, (size_t)c->used + 1);
        io_uring_prep_send(entry, c->fd, c->out, (size_t)(head + length), MSG_WAITALL);
    }
    c->sends = end != NULL;
    io_uring_sqe_set_data(entry, c);
}
int main(int argc, char **argv)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(argv[1]))};
    int one = 1, s = socket(AF_INET, SOCK_STREAM, 0);
    (void)argc;
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(s, (void *)&a, sizeof a) || listen(s, 64) || io_uring_queue_init(256, &ring, 0))
        return 1;
    io_uring_prep_accept(next(NULL), s, NULL, NULL, 0);
    for (;;) {
        struct io_uring_cqe *done;
        io_uring_submit(&ring);
        if (io_uring_wait_cqe(&ring, &done))
            return 1;
        struct connection *c = io_uring_cqe_get_data(done);
        int result = done->res;
        io_uring_cqe_seen(&ring, done);
        if (!c) {
            struct io_uring_sqe *entry = next(NULL);
            io_uring_prep_accept(entry, s, NULL, NULL, 0);
            io_uring_sqe_set_data(entry, NULL);
            c = calloc(1, sizeof *c);
            c->fd = result;
            go_on(c);
        } else if (result <= 0) {
            shutdown(c->fd, SHUT_RDWR); // leaks, for as long as the test lasts
        } else {
            c->used += c->sends ? 0 : result;
            go_on(c);
        }
    }
}
"""


# What daemons do to their descriptors and processes: it forks twice, is its own session's, closes all that it
# inherited and puts /dev/null over 0 to 2; and each connection is served in another way.
STRANGE_SERVER = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
""" + C_SERVER.replace("int main(", "int plain_main(") + r"""
static void lock_up(void) // but read and write, which serve, and exit_group
{
    struct sock_filter allow[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_read, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {sizeof allow / sizeof *allow, allow};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        _exit(3);
}
static int serve_in_new_program(int fd, char *self, int all_closed)
{
    if (dup2(fd, 0) < 0 || (all_closed && close_range(3, ~0U, 0)))
        _exit(4);
    execl(self, self, "serve", (char *)0);
    _exit(5);
}
int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "serve") == 0) {
        serve(0);
        return 0;
    }
    char self[4096] = "";
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(argv[1]))};
    int one = 1;
    if (fork() > 0) { // the harness's
        pause();
        return 1;
    }
    setsid();
    if (fork() > 0)
        _exit(0);
    FILE *pid = fopen(argv[2], "w");
    fprintf(pid, "%d", (int)getpid());
    fclose(pid);
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0)
        return 1;
    closefrom(0);
    int null = open("/dev/null", O_RDWR);
    dup2(null, 1);
    dup2(null, 2);
    signal(SIGCHLD, SIG_IGN);
    int s = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(s, (void *)&a, sizeof a) || listen(s, 64))
        return 1;
    for (unsigned n = 0;; n++) {
        int fd = accept(s, 0, 0), ways = n % 5;
        if (fd < 0)
            return 1;
        pid_t child = ways < 2 ? vfork() : fork();
        if (child == 0) {
            if (ways < 2)
                serve_in_new_program(fd, self, ways);
            if (ways == 2)
                lock_up();
            if (ways == 3) {
                setsid();
                if (fork() > 0)
                    _exit(0);
            }
            if (ways == 4) { // under a number that another descriptor had
                int over = open("/dev/null", O_RDWR);
                dup2(fd, over);
                close(fd);
                fd = over;
            }
            serve(fd);
            _exit(0);
        }
        close(fd);
    }
}
"""


class Absent(Exception):
    """A server that cannot be tried here, and why."""


def need(program):
    path = shutil.which(program)
    if not path:
        raise Absent(f"there is no {program}")
    return path


def build(name, text, command):
    path = write(name, text)
    result = subprocess.run(
        [part.replace("SOURCE", path) for part in command], cwd=WORK, capture_output=True, text=True,
        env={**os.environ, "HOME": WORK, "GOCACHE": WORK + "/gocache", "GO111MODULE": "off"}, check=False,
    )
    if result.returncode:
        raise Absent(f"{command[0]} failed: {result.stderr.strip()[-200:]}")


def nginx():
    need("nginx")
    for name, text in PAGES.items():
        write(f"pages/{name}", text)
    conf = """
daemon off; worker_processes 2; pid %s/nginx-PORT.pid; error_log stderr;
events {}
http { access_log off; client_body_temp_path %s/t1; proxy_temp_path %s/t2; fastcgi_temp_path %s/t3;
  uwsgi_temp_path %s/t4; scgi_temp_path %s/t5; types {} default_type text/plain;
  server { listen PORT; root %s/pages; location / { try_files $uri /0; } } }
""" % ((WORK,) * 7)
    return ["nginx", "-e", "stderr", "-p", WORK, "-c", conf]


def haproxy():
    need("haproxy")
    rules = "\n".join(
        f'  http-request return status 200 content-type text/plain string "{text[:4000]}" if {{ path /{name} }}'
        for name, text in PAGES.items()
    )
    return ["haproxy", "-db", "-f", f"""
global
  nbthread 2
defaults
  mode http
  timeout client 60s
  timeout server 60s
  timeout connect 5s
frontend f
  bind *:PORT
{rules}
  http-request return status 200 content-type text/plain string "a"
"""]


def lighttpd():
    need("lighttpd")
    for name, text in PAGES.items():
        write(f"pages/{name}", text)
    return ["lighttpd", "-D", "-f", f"""
server.document-root = "{WORK}/pages"
server.port = PORT
server.bind = "0.0.0.0"
server.error-handler-404 = "/0"
mimetype.assign = ("" => "text/plain")
"""]


def memcached():
    need("memcached")
    return ["memcached", "-u", "root", "-l", "ADDRESS", "-p", "PORT", "-U", "0", "-t", "4"]


def redis():
    need("redis-server")
    return ["redis-server", "--bind", "ADDRESS", "--port", "PORT", "--save", "", "--io-threads", "4",
            "--io-threads-do-reads", "yes", "--protected-mode", "no", "--dir", WORK]


def postgres():
    need("initdb")
    folder = f"{WORK}/postgres"
    os.makedirs(folder, exist_ok=True)
    shutil.chown(folder, "nobody")
    if not os.path.exists(folder + "/data"):
        subprocess.run(["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "initdb", "-A", "trust",
                        "-U", "nobody", "--no-sync", "-D", folder + "/data"],
                       cwd=folder, check=True, capture_output=True)
    program = "/usr/lib/postgresql/15/bin/postgres"
    return ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups",
            program if os.path.exists(program) else need("postgres"), "-D", folder + "/data", "-p", "PORT",
            "-h", "ADDRESS", "-k", folder, "-c", "fsync=off"]


def node(how):
    def command():
        need("node")
        return ["node", write("server.js", NODE), how, "PORT", "ADDRESS"]

    return command


def gunicorn():
    need("gunicorn")
    write("app.py", PYTHON_APP)
    return ["gunicorn", "--chdir", WORK, "-w", "2", "--threads", "2", "--worker-tmp-dir", WORK,
            "--log-level=warning", "-b", "ADDRESS:PORT", "app:app"]


def jvm():
    need("javac")
    build("Server.java", JAVA, ["javac", "-d", WORK, "SOURCE"])
    return ["java", "-XX:+UseSerialGC", "-cp", WORK, "Server", "PORT", "ADDRESS"]


def golang():
    need("go")
    build("server.go", GO, ["go", "build", "-o", WORK + "/goserver", "SOURCE"])
    return [WORK + "/goserver", "PORT", "ADDRESS"]


def static():
    build("static.c", C_SERVER, ["cc", "-O2", "-static", "-o", WORK + "/staticserver", "SOURCE"])
    return [WORK + "/staticserver", "PORT"]


def uring():
    build("uring.c", URING_SERVER, ["cc", "-O2", "-o", WORK + "/uringserver", "SOURCE", "-luring"])
    return [WORK + "/uringserver", "PORT"]


def setuid():
    build("setuid.c", C_SERVER, ["cc", "-O2", "-o", WORK + "/setuidserver", "SOURCE"])
    os.chown(WORK + "/setuidserver", 65534, 65534)
    os.chmod(WORK + "/setuidserver", 0o4755)
    return [WORK + "/setuidserver", "PORT"]


def strange():
    build("strange.c", STRANGE_SERVER, ["cc", "-O2", "-o", WORK + "/strangeserver", "SOURCE"])
    return [WORK + "/strangeserver", "PORT", WORK + "/daemon.pid"]


MEMCACHED = ask_lines(memcached_requests, memcached_whole)
REDIS = ask_lines(redis_requests, redis_whole)
# name: its command, who asks it, the protocol of its load or None, whether the shim can be in it
SERVERS = {
    "memcached": (memcached, MEMCACHED, "memcached", True),
    "redis, io-threads": (redis, REDIS, "redis", True),
    "nginx, reloaded": (nginx, ask_http, "http", True),
    "haproxy": (haproxy, ask_http, "http", True),
    "lighttpd": (lighttpd, ask_http, "http", True),
    "postgresql": (postgres, ask_postgres, None, True),
    "node, workers": (node("workers"), ask_http, "http", True),
    "node, cluster": (node("cluster"), ask_http, "http", True),
    "gunicorn": (gunicorn, ask_http, "http", True),
    "jvm": (jvm, ask_http, "http", True),
    "go": (golang, ask_http, "http", False),
    "static": (static, ask_http, "http", False),
    "io_uring": (uring, ask_http, "http", False),
    "strange": (strange, ask_http, "http", True),
    "setuid": (setuid, ask_http, "http", False),
}


# --- one server -----------------------------------------------------------------------------------


def filled(command, port, address):
    """The command for a port; what is a configuration becomes a file."""
    out = []
    for part in command:
        part = part.replace("PORT", str(port)).replace("ADDRESS", address)
        out.append(write(f"conf-{port}", part) if "\n" in part else part)
    return out


class Server:
    def __init__(self, command, port, extra):
        self.log = open(f"{WORK}/server.log", "ab")
        self.process = subprocess.Popen(
            filled(command, port, "127.0.0.1"), env={**os.environ, **extra}, cwd=WORK, stdin=subprocess.DEVNULL,
            stdout=self.log, stderr=self.log, start_new_session=True,
        )
        last = time.monotonic() + PATIENCE_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            except OSError as error:
                if self.process.poll() is not None or time.monotonic() > last:
                    self.stop()
                    raise AssertionError(f"it does not listen: {error}") from error
                time.sleep(0.05)

    def stop(self):
        """Asks it to end; returns what was wrong with it before, or None."""
        wrong = self.process.poll()
        if wrong is None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                pass
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        if os.path.exists(WORK + "/daemon.pid"):
            with open(WORK + "/daemon.pid") as file:
                daemon = int(file.read())
            os.remove(WORK + "/daemon.pid")
            # It is there, unless `taillight run` had one since, which leaves none.
            if os.path.exists(f"/proc/{daemon}/exe") and os.readlink(f"/proc/{daemon}/exe") == WORK + "/strangeserver":
                os.kill(daemon, signal.SIGKILL)
        self.log.close()
        return wrong


def log_records(path):
    with open(path, "rb") as file:
        data = file.read()
    size = struct.unpack_from("<I", data, 20)[0]
    return [data[at : at + size] for at in range(128, len(data), size)]


def moved_by_connection(folder):
    """peer's port: [received, sent] of what the server accepted, all its processes together."""
    ports, moved = {}, {}
    for record in log_records(folder + "/connections.tlog"):
        if not record[5]:
            ports[struct.unpack_from("<I", record, 0)[0]] = struct.unpack_from("<H", record, 50)[0]
    calls = glob.glob(folder + "/calls*.tlog")  # a long capture has segments
    for record in [record for path in calls for record in log_records(path)]:
        length, connection = struct.unpack_from("<II", record, 24)
        kind = record[50]
        if connection in ports and kind in (1, 2):
            moved.setdefault(ports[connection], [0, 0])[kind - 1] += length
    return moved


def watched(command, ask, reload):
    """Asks it under a capture. Returns the answers' digest, and what the capture says of them."""
    port = free_port()
    folder, shim = f"{WORK}/capture", f"/dev/shm/trust-{os.getpid()}"
    shutil.rmtree(folder, ignore_errors=True)
    capture = subprocess.Popen(
        [TAILLIGHT, "capture", "--out", folder, "--port", str(port), "--backend", "none", "--shim", shim, "--quiet"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )
    assert b"ready" in capture.stdout.readline(), capture.stderr.read()
    server = Server(command, port, {"LD_PRELOAD": SHIM, "TAILLIGHT_SHIM_DIR": shim})
    totals = {}

    def between():
        if reload:
            server.process.send_signal(signal.SIGHUP)
            time.sleep(0.5)

    digest = ask(port, totals, between)
    time.sleep(0.3)  # the last closes
    _, said = capture.communicate(timeout=PATIENCE_S)
    wrong = server.stop()
    assert wrong is None, f"it ended by itself: {wrong}"
    assert capture.returncode == 0, said.decode()
    with open(folder + "/capture.json") as file:
        facts = json.load(file)
    moved = moved_by_connection(folder)
    exact = sum(moved.get(key) == list(value) for key, value in totals.items())
    return digest, facts, exact, len(totals), moved


def loaded(command, protocol, shim="true"):
    """`taillight run`: its summary, and in words what it joined, or why it cannot say."""
    run = f"{WORK}/run"
    words = [w.replace("ADDRESS", "{address}") for w in command]
    port = free_port()
    words = [write("conf-run", w.replace("PORT", str(port))) if "\n" in w else w.replace("PORT", str(port)) for w in words]
    mix = "  mix: {get: 1}\n"
    experiment = write("experiment.yaml", f"""
name: matrix
hosts:
  client: {{kind: netns, cores: [1]}}
  server: {{kind: netns, cores: [0]}}
servers:
  it: {{kind: command, port: {port}, shim: {shim}, command: {json.dumps(words)}}}
workload:
  protocol: {protocol}
{mix}  keys: {{count: 100}}
load: {{rate: 300, duration: 2s, connections: 8, depth: 8, timeout: 5s}}
""")
    for _ in range(2):  # on a busy machine a server may take longer to start than a run waits
        shutil.rmtree(run, ignore_errors=True)
        result = subprocess.run([TAILLIGHT, "run", experiment, "--out", run, "--quiet"], capture_output=True,
                                text=True, timeout=180, check=False)
        if "does not listen" not in result.stderr:
            break
    else:
        raise AssertionError("run: " + result.stderr.strip()[:200])
    assert result.returncode in (0, 4), f"run: exit {result.returncode}: {result.stderr[-600:]}"
    with open(run + "/summary.json") as file:
        summary = json.load(file)
    share = summary["joined"] / summary["requests"] if summary["requests"] else 0
    text = f"{100 * share:.1f} % of {summary['requests']} requests joined"
    if share < 0.9:
        words = [summary.get("verdict") or ""] + list(summary.get("warnings") or [])
        assert any(words), f"{text}, and no reason given"
        text += ": N/A: " + next((w for w in words if "shim" in w), words[0])[:200]
    return summary, text


def judge_without_shim(name):
    make, _, protocol, _ = SERVERS[name]
    if not protocol:
        raise Absent("no protocol of the load's is its own")
    summary, text = loaded(make(), protocol, "false")
    text += f", {summary['joined']} of {summary['answered']} answered ones, {summary['calls']['by_kernel']} calls"
    assert summary["calls"]["by_shim"] == 0, text
    assert summary["answered"] >= 100, text
    assert summary["joined"] >= 0.999 * summary["answered"], text
    return text


def runs(pid, folder):
    """Whether a process runs a program of that folder."""
    try:
        return os.readlink(f"/proc/{pid}/exe").startswith(folder + "/")
    except OSError:
        return False


def judge(name):
    make, ask, protocol, seen = SERVERS[name]
    command = make()
    port = free_port()
    plain = Server(command, port, {})
    expected = ask(port, {})
    assert plain.stop() is None, "it ended by itself, without the shim"
    digest, facts, exact, connections, moved = watched(command, ask, "reloaded" in name)
    assert digest == expected, "it answers other bytes with the shim"
    shim = facts["shim"]
    text = f"answers equal; {shim['calls']} calls"
    if connections:
        text += f", {exact} of {connections} connections exact"
        lost = shim["dropped"] or shim["unseen_connections"] or shim["warning"]
        assert exact == connections or lost, f"{text}, and nothing is said of the others"
    elif seen:
        assert moved, "no bytes were seen"
    if not seen:
        assert shim["warning"], "the shim was not in it, and nothing is said"
    if shim["warning"]:
        text += f" ({shim['warning'][:160]})"
    if protocol:
        summary, words = loaded(command, protocol)
        text += "; " + words
        assert name != "strange" or summary["calls"]["by_kernel"] > 0, f"{text}; behind its filter nobody saw its calls"
    else:
        text += "; run: N/A, no protocol of the load's is its own"
    left = [pid for pid in os.listdir("/proc") if pid.isdigit() and runs(pid, WORK)]
    assert not left, f"{text}; processes are left: {left}"
    return text


def main():
    os.makedirs(WORK + "/pages", exist_ok=True)
    os.chmod(WORK, 0o755)
    failed = 0
    for name in SERVERS:
        if ONLY and name.split(",")[0] not in ONLY and name not in ONLY:
            continue
        begun = time.monotonic()
        try:
            text = judge_without_shim(name) if WITHOUT_SHIM else judge(name)
        except Absent as why:
            text = f"not tried: {why}"
        except AssertionError as why:
            failed += 1
            text = f"FAIL: {why}"
        print(f"{name:18} {time.monotonic() - begun:5.1f} s  {text}", flush=True)
    return 1 if failed else 0


sys.exit(main())
