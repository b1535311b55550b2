/** SSL_OP_NO_RENEGOTIATION of OpenSSL: with TLS 1.2, the other side could repeat its handshake at any time. */
export const noRenegotiation = 0x4000_0000;
