import { generateKeyPairSync, sign } from "node:crypto";

/** A key and a certificate for 127.0.0.1 that nobody but a test trusts, as PEM. */
export function makeCertificate(): { key: string; certificate: string } {
	const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
	const ecdsaWithSha256 = sequence(Buffer.from("06082a8648ce3d040302", "hex"));
	const commonName = Buffer.from("0603550403", "hex");
	const name = sequence(der(0x31, sequence(commonName, der(0x0c, Buffer.from("127.0.0.1")))));
	const day = 24 * 60 * 60 * 1000;
	const validity = sequence(time(Date.now() - day), time(Date.now() + day));
	const subjectAltName = Buffer.from("0603551d11", "hex");
	const address = sequence(der(0x87, Buffer.from([127, 0, 0, 1])));
	const extensions = der(0xa3, sequence(sequence(subjectAltName, der(0x04, address))));
	const version = der(0xa0, der(0x02, Buffer.from([2])));
	const serial = der(0x02, Buffer.from([1]));
	const publicPart = publicKey.export({ type: "spki", format: "der" });
	const content = sequence(version, serial, ecdsaWithSha256, name, validity, name, publicPart, extensions);
	const signature = der(0x03, Buffer.from([0]), sign("sha256", content, privateKey));
	const certificate = sequence(content, ecdsaWithSha256, signature).toString("base64");
	return {
		key: privateKey.export({ type: "pkcs8", format: "pem" }) as string,
		certificate: `-----BEGIN CERTIFICATE-----\n${certificate.replace(/.{64}/g, "$&\n")}\n-----END CERTIFICATE-----\n`,
	};
}

function sequence(...parts: Buffer[]): Buffer {
	return der(0x30, ...parts);
}

function time(at: number): Buffer {
	const text = new Date(at).toISOString().replace(/[-:T]/g, "");
	return der(0x17, Buffer.from(`${text.slice(2, 14)}Z`));
}

/** A value in ASN.1's distinguished encoding. */
function der(tag: number, ...parts: Buffer[]): Buffer {
	const content = Buffer.concat(parts);
	const { length } = content;
	const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
	return Buffer.concat([Buffer.from([tag, ...size]), content]);
}
