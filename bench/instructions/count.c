// A plugin for qemu-user that prints how many instructions a program has executed, all threads together. The functions
// of qemu are declared here, because Debian's package has no header for them:
// https://www.qemu.org/docs/master/devel/tcg-plugins.html
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef uint64_t plugin_id;
struct block;
enum { ADD = 0 };

void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, void (*call)(plugin_id id, struct block *b));
size_t qemu_plugin_tb_n_insns(const struct block *b);
void qemu_plugin_register_vcpu_tb_exec_inline(struct block *b, int operation, void *sum, uint64_t add);
void qemu_plugin_register_atexit_cb(plugin_id id, void (*call)(plugin_id id, void *data), void *data);

int qemu_plugin_version = 1;
static uint64_t instructions;

static void translated(plugin_id id, struct block *b) {
	qemu_plugin_register_vcpu_tb_exec_inline(b, ADD, &instructions, qemu_plugin_tb_n_insns(b));
}

static void ended(plugin_id id, void *data) { fprintf(stderr, "instructions %" PRIu64 "\n", instructions); }

int qemu_plugin_install(plugin_id id, const void *about, int argc, char **argv) {
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	qemu_plugin_register_atexit_cb(id, ended, NULL);
	return 0;
}
