// The files of a model, which the reader has chosen, as the files of a directory: Go's package os reads them by the global
// variable fs. They stay on the disk, and are read when Go reads them.
'use strict';

self.attnFiles = new Map(); // by path below /model

self.fs = (() => {
  const open = new Map(), decoder = new TextDecoder();
  let next = 100;
  const failure = (code) => Object.assign(new Error(code), { code });
  const names = (path) => {
    const prefix = path === '/model' ? '' : `${path.slice('/model/'.length)}/`, list = new Set();
    for (const name of self.attnFiles.keys()) if (name.startsWith(prefix)) list.add(name.slice(prefix.length).split('/')[0]);
    return [...list];
  };
  /** Returns the file or directory at a path. */
  const find = (path) => {
    const clean = path.replace(/\/+$/, ''), file = self.attnFiles.get(clean.replace(/^\/model\//, ''));
    if (file) return { file };
    if (clean === '/model' || clean.startsWith('/model/')) {
      const list = names(clean);
      if (list.length > 0) return { list };
    }
    throw failure('ENOENT');
  };
  const stat = ({ file }) => ({ isDirectory: () => !file, mode: file ? 0o100444 : 0o40555, size: file?.size ?? 0, dev: 0, ino: 0, nlink: 1, uid: 0, gid: 0, rdev: 0,
    blksize: 4096, blocks: 0, atimeMs: 0, mtimeMs: file?.lastModified ?? 0, ctimeMs: 0 });
  const at = (fd) => open.get(fd) ?? (() => { throw failure('EBADF'); })();
  /** Makes a function that ends with a callback of one that returns or throws. */
  const call = (run) => (...args) => {
    const done = args.pop();
    let result;
    try {
      result = run(...args);
    } catch (error) {
      return done(error.code ? error : failure('EIO')); // a file has moved, or has changed since it was chosen
    }
    done(null, result);
  };
  const refused = (...args) => args.pop()(failure('EROFS'));
  const all = Object.fromEntries(['chmod', 'chown', 'fchmod', 'fchown', 'ftruncate', 'lchown', 'link', 'mkdir', 'rename', 'rmdir', 'symlink', 'truncate', 'unlink', 'utimes', 'write'].map((name) => [name, refused]));
  return { ...all,
    constants: { O_WRONLY: 1, O_RDWR: 2, O_CREAT: 64, O_TRUNC: 512, O_APPEND: 1024, O_EXCL: 128, O_DIRECTORY: 65536 },
    writeSync(fd, bytes) {
      console.log(decoder.decode(bytes));
      return bytes.length;
    },
    open: call((path, flags) => {
      if (flags & 3) throw failure('EROFS');
      open.set(++next, { ...find(path), place: 0 });
      return next;
    }),
    close: call((fd) => void open.delete(fd)),
    fstat: call((fd) => stat(at(fd))),
    stat: call((path) => stat(find(path))),
    lstat: call((path) => stat(find(path))),
    readdir: call((path) => find(path).list ?? (() => { throw failure('ENOTDIR'); })()),
    readlink: call(() => { throw failure('EINVAL'); }),
    fsync: call(() => {}),
    read: call((fd, bytes, offset, length, position) => {
      const file = at(fd), from = position ?? file.place;
      const data = new Uint8Array(new FileReaderSync().readAsArrayBuffer(file.file.slice(from, from + length)));
      bytes.set(data, offset);
      if (position == null) file.place += data.length;
      return data.length;
    }),
  };
})();
