//! A wire between a client and the server that can be cut.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Passes bytes on until it is cut.
pub struct Proxy {
    address: SocketAddr,
    open: Arc<AtomicBool>,
    wires: Arc<Mutex<Vec<TcpStream>>>,
}

impl Proxy {
    /// A wire to this address.
    pub fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let open = Arc::new(AtomicBool::new(true));
        let wires: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let (is_open, all) = (open.clone(), wires.clone());
        std::thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                if !is_open.load(Ordering::SeqCst) {
                    continue; // dropped: the caller finds a closed connection
                }
                let Ok(far) = TcpStream::connect(server) else { continue };
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    std::thread::spawn(move || pass(from, to));
                }
                all.lock().unwrap().extend([near, far]);
            }
        });
        Self { address, open, wires }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Breaks all connections; new ones are let through.
    pub fn cut(&self) {
        for wire in self.wires.lock().unwrap().drain(..) {
            let _ = wire.shutdown(Shutdown::Both);
        }
    }

    /// Breaks all connections and lets no new ones through.
    pub fn close(&self) {
        self.open.store(false, Ordering::SeqCst);
        self.cut();
    }

    /// Lets connections through again.
    pub fn open(&self) {
        self.open.store(true, Ordering::SeqCst);
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream) {
    let mut buffer = [0; 16 * 1024];
    loop {
        match from.read(&mut buffer) {
            Ok(read) if read > 0 && to.write_all(&buffer[..read]).is_ok() => {}
            _ => {
                let _ = to.shutdown(Shutdown::Both);
                return;
            }
        }
    }
}
